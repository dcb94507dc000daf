import { z } from 'zod';
import { KEY_SCOPES } from '../vocabularies.ts';

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
  prefix: z.string().describe('First characters of the key, enough to recognise it'),
  scopes: z.array(z.string()),
  max_sessions: z.int().nullable().describe('Sessions open at the same time; null = the default of the server'),
  created_at: z.string(),
  expires_at: z.string().nullable().describe('null = never'),
  last_used_at: z.string().nullable(),
  revoked_at: z.string().nullable(),
});
export type ApiKeyView = z.infer<typeof keyViewSchema>;
export const keyListSchema = z.object({ keys: z.array(keyViewSchema) });
export const createdKeySchema = keyViewSchema.extend({ key: z.string().describe('The key itself; shown this once.') });
export type CreatedKey = z.infer<typeof createdKeySchema>;

export const rotateSecretSchema = z.strictObject({
  drop_previous: z.boolean().default(false).describe('Earlier signed URLs stop working at once. Use it when the key may have leaked.'),
});
export const rotatedSecretSchema = z.object({
  key_replaced: z.boolean().describe('False if the configuration sets the key: then only stored secrets were sealed again.'),
  resealed: z.int().describe('Sessions whose secrets were sealed with the current key.'),
  unreadable: z.int().describe('Sessions whose secrets no key of this service can decrypt.'),
  previous_keys: z.int().describe('Number of earlier keys that still decrypt and verify.'),
});
export type RotateSecret = z.infer<typeof rotateSecretSchema>;
export type RotatedSecret = z.infer<typeof rotatedSecretSchema>;
/** As a client sends it. */
export type NewKey = z.input<typeof createKeyBodySchema>;
