import { SESSION_STATES } from '../vocabularies.ts';
import { z } from 'zod';
import { sessionHolderSchema, lastCallSchema } from './session.schema.ts';

export const slotListQuerySchema = z.object({
  environment: z
    .string()
    .min(1)
    .max(500)
    .refine((value) => !value.includes('\0'), { error: 'must not hold NUL characters' })
    .optional()
    .describe('`owner/name`: only this environment, also if no slot is taken.'),
  limit: z.coerce.number().int().min(1).max(1_000).default(200).describe('Sessions per environment version.'),
});
export type SlotListQuery = z.output<typeof slotListQuerySchema>;

export const slotListSchema = z.object({
  environments: z.array(
    z.object({
      environment: z.string(),
      version: z.number().nullable(),
      managed: z.boolean().describe('It belongs to your organisation, so sessions of others are listed too.'),
      capacity: z.number().nullable().describe('Sessions at the same time on all replicas; null = no limit.'),
      used: z.number().describe('Slots that are taken, by any organisation.'),
      waiting: z.number().describe('Sessions that wait for a slot, of any organisation.'),
      sessions: z.array(
        z.object({
          sid: z.string().nullable().describe('Like holder and run: null for a session of another organisation.'),
          state: z.enum(SESSION_STATES),
          waiting: z.boolean(),
          org: z.string(),
          holder: sessionHolderSchema.nullable(),
          owner_replica: z.string().nullable(),
          created_at: z.string(),
          last_seen_at: z.string(),
          last_call: lastCallSchema.nullable(),
          run: z.string().nullable(),
          task: z.object({ split: z.string(), index: z.number() }).nullable().describe('null for a task by value, too.'),
        }),
      ),
    }),
  ),
});
export type SlotList = z.infer<typeof slotListSchema>;
export type SlotGroup = SlotList['environments'][number];
export type SlotHolder = SlotGroup['sessions'][number];
