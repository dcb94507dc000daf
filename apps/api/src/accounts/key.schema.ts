import { z } from 'zod';
import { KEY_SCOPES } from '@palestra/protocol';

const scopeSchema = z.enum(KEY_SCOPES);

export const createKeyBodySchema = z.object({
  name: z.string().trim().min(1).max(100),
  scopes: z.array(scopeSchema).min(1).default(['sessions', 'environments', 'rollouts']),
  max_sessions: z
    .int()
    .positive()
    .max(1_000_000)
    .nullable()
    .default(null)
    .describe('Sessions open at the same time; null = the default of the server'),
  expires_at: z.iso
    .datetime({ offset: true })
    .refine((time) => Date.parse(time) > Date.now(), 'must be in the future')
    .nullable()
    .default(null)
    .describe('When the key stops working; null = never'),
});
export type CreateKeyBody = z.infer<typeof createKeyBodySchema>;

export const keyViewSchema = z.object({
  id: z.string(),
  name: z.string(),
  user: z.string().describe('The member that the key belongs to'),
  prefix: z.string(),
  scopes: z.array(z.string()),
  max_sessions: z.int().nullable(),
  created_at: z.string(),
  expires_at: z.string().nullable(),
  last_used_at: z.string().nullable(),
  revoked_at: z.string().nullable(),
});
export const keyListSchema = z.object({ keys: z.array(keyViewSchema) });
export const createdKeySchema = keyViewSchema.extend({ key: z.string().describe('The key itself; shown this once.') });
