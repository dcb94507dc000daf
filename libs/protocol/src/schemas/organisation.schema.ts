import { z } from 'zod';
import { ROLES } from '../vocabularies.ts';

const role = z.enum(ROLES).describe('owner: also settings, members and keys of the organisation.');
/** The name in addresses: `/{name}/runs`. */
const name = z
  .string()
  .trim()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, 'expected 1 to 63 lower-case letters, digits and hyphens');
/** Name of a person. Invisible characters and characters that change the text direction are rejected. */
const personName = z
  .string()
  .trim()
  .min(1)
  .max(100)
  .regex(/^[^\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]+$/u, 'must not hold characters that show nothing');
const limit = z.int().min(1).max(1_000_000).nullable();
const days = z.int().min(1).max(36_500).nullable();

export const organisationSchema = z.object({
  id: z.string(),
  name: z.string(),
  role: role.describe('Of the caller.'),
  retention_days: days.describe('Default of all runs: days without new messages after which rollouts are erased; null: never.'),
  max_sessions: limit.describe('Sessions open at the same time; null: the default of the server.'),
  created_at: z.string(),
});
export const changeOrganisationSchema = z.strictObject({ retention_days: days.optional(), max_sessions: limit.optional() });
export type ChangeOrganisation = z.infer<typeof changeOrganisationSchema>;

export const createOrganisationSchema = z.strictObject({ name });
export type CreateOrganisation = z.infer<typeof createOrganisationSchema>;
const link = z.string().describe('Signs a browser in, once, within a day; shown this once.');
export const createdOrganisationSchema = z.object({ organisation: organisationSchema, sign_in_url: link });

export const memberSchema = z.object({ id: z.string(), name: z.string(), role, created_at: z.string(), keys: z.number() });
export const memberListSchema = z.object({ members: z.array(memberSchema) });
export const createMemberSchema = z.strictObject({ name: personName, role: z.enum(ROLES).default('member') });
export type CreateMember = z.infer<typeof createMemberSchema>;
export const createdMemberSchema = memberSchema.extend({ sign_in_url: link });
export const changeMemberSchema = z.strictObject({ role });
export type ChangeMember = z.infer<typeof changeMemberSchema>;
export const signInLinkSchema = z.object({ sign_in_url: z.string() });

export type Organisation = z.infer<typeof organisationSchema>;
export type CreatedOrganisation = z.infer<typeof createdOrganisationSchema>;
export type Member = z.infer<typeof memberSchema>;
export type MemberList = z.infer<typeof memberListSchema>;
export type CreatedMember = z.infer<typeof createdMemberSchema>;
export type SignInLink = z.infer<typeof signInLinkSchema>;
/** As a client sends it. */
export type NewMember = z.input<typeof createMemberSchema>;
