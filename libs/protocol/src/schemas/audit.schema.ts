import { z } from 'zod';
import { AUDIT_ACTIONS } from '../vocabularies.ts';

const GROUPS = new Set<string>([...AUDIT_ACTIONS, ...AUDIT_ACTIONS.map((action) => action.split('.')[0]!)]);
const time = z.iso.datetime({ offset: true });

const filterQuery = {
  action: z
    .string()
    .refine((text) => GROUPS.has(text), `expected one of ${[...GROUPS].toSorted().join(', ')}`)
    .optional()
    .describe('An action, or a group of them: `key` has `key.create` and `key.revoke`.'),
  actor: z
    .string()
    .max(200)
    .refine((text) => !text.includes('\0'), 'must not hold NUL characters')
    .optional()
    .describe('Id or name of the person.'),
  since: time.optional().describe('Start of the period, inclusive.'),
  until: time.optional().describe('End of the period, exclusive.'),
};
export const auditExportQuerySchema = z.object(filterQuery);
export type AuditExportQuery = z.infer<typeof auditExportQuerySchema>;
export const auditQuerySchema = z.object({
  ...filterQuery,
  limit: z.coerce.number().int().min(1).max(500).default(50),
  cursor: z.string().max(200).optional().describe('`next_cursor` of the previous page.'),
});
export type AuditQuery = z.infer<typeof auditQuerySchema>;

const auditEventSchema = z.object({
  id: z.string(),
  at: z.string(),
  action: z.string(),
  refused: z.boolean().describe('The action was attempted and refused, such as a failed sign-in.'),
  actor: z
    .object({ id: z.string(), name: z.string().nullable() })
    .nullable()
    .describe('Name of the user at that time; null: an unknown caller, or the service itself.'),
  key: z
    .object({ id: z.string(), name: z.string().nullable() })
    .nullable()
    .describe('The API key that performed it, also through a browser that signed in with it.'),
  target: z.object({ id: z.string().nullable(), name: z.string().nullable() }).nullable(),
  details: z.record(z.string(), z.unknown()),
  address: z.string().describe('Address of the client as the service sees it; empty: the service itself.'),
  user_agent: z.string(),
});
export type AuditEvent = z.infer<typeof auditEventSchema>;
export const auditListSchema = z.object({ events: z.array(auditEventSchema), next_cursor: z.string().nullable() });
export type AuditList = z.infer<typeof auditListSchema>;
