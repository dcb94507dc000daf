import { z } from 'zod';
import type { ToolsAnswer } from '../../episode.schema.ts';
import { SPLIT_TYPES } from '../../vocabularies.ts';
import { environmentReportViewSchema } from './environment-report.schema.ts';
import { sessionPolicySchema } from '../session-policy.schema.ts';
import { httpUrl } from './urls.ts';

/** Bodies and queries of `/v1/environments`. Keys that the `orwd` CLI reads are its own (docs/reference/ors.md#rest-endpoints). */

const name = z
  .string({ error: 'name must be a string' })
  .regex(/^[A-Za-z0-9_-]{3,64}$/, { error: 'name must be 3 to 64 letters, digits, "-" or "_"' });
const storable = (text: string) => !text.includes('\0');
const NUL = { error: 'must not hold NUL characters' };
const description = z.string().max(10_000).refine(storable, NUL);
const readme = z.string().max(1_000_000).refine(storable, NUL).nullable();
const link = httpUrl().nullable();
const serverUrl = httpUrl('source.url');
const argument = z.string().max(10_000).refine(storable, NUL);

const SOURCE_ERROR =
  'source must be {"kind":"remote","url"} for an ORS server, {"kind":"openenv","url"}, {"kind":"mcp","url"} or {"kind":"mcp","command":[...]}';

/** Address of an environment that its owner runs. */
const serverSource = z.union(
  [
    /** Base URL of a running ORS server. */
    z.strictObject({ kind: z.literal('remote'), url: serverUrl }),
    /** Base URL of a running OpenEnv server, of any generation. */
    z.strictObject({ kind: z.literal('openenv'), url: serverUrl }),
    /** URL of an MCP server's endpoint (streamable HTTP, or the older SSE transport). */
    z.strictObject({ kind: z.literal('mcp'), url: serverUrl }),
    /** An MCP server on standard input and output: program and arguments. This service runs it if PALESTRA_ALLOW_COMMANDS=1. */
    z.strictObject({ kind: z.literal('mcp'), command: z.array(argument).min(1).max(100) }),
  ],
  { error: SOURCE_ERROR },
);

export const createEnvironmentSchema = z.object({
  name,
  /** null: the organisation of the caller. */
  namespace: z.string().min(1).max(64).nullish(),
  description: description.default(''),
  isPrivate: z.boolean().default(true).describe('Only the organisation can see and play it'),
  isHarbor: z.boolean().default(false),
  readme: readme.optional(),
  source: z
    .union([z.strictObject({ kind: z.literal('bundled'), name: z.string().max(64) }), serverSource], {
      error: `${SOURCE_ERROR}, or {"kind":"bundled","name"} for a bundled environment`,
    })
    .optional()
    .describe('Where it runs. `bundled`: like `palestra/NAME`, with a name, settings and tasks of its owner.'),
});
export type CreateEnvironment = z.infer<typeof createEnvironmentSchema>;

export const updateEnvironmentSchema = z.object({
  new_name: name.optional(),
  new_description: description.optional(),
  new_is_private: z.boolean().optional(),
  new_is_harbor: z.boolean().optional(),
  new_readme_content: readme.optional(),
  new_arxiv_url: link.optional(),
  new_external_github_url: link.optional(),
  new_external_hf_url: link.optional(),
  /** null: the declaration of the author, else the defaults of the server. Open sessions keep their policy. */
  sessions: sessionPolicySchema.nullable().optional(),
});
export type UpdateEnvironment = z.infer<typeof updateEnvironmentSchema>;

export const createVersionSchema = z.object({
  source: serverSource,
  task_set: z.uuid().nullish().describe('Id of the uploaded task set; null: the tasks of its server; absent: as in the previous version.'),
});
export type CreateVersion = z.infer<typeof createVersionSchema>;

const source = z.object({
  kind: z.enum(['bundled', 'remote', 'openenv', 'mcp', 'hosted']),
  url: z.string().optional(),
  command: z.array(z.string()).optional(),
});

/** A new version; `owner/name@number` selects it. */
export const environmentVersionSchema = z.object({ id: z.string(), number: z.number(), source, created_at: z.string() });
export type EnvironmentVersionView = z.infer<typeof environmentVersionSchema>;

export const environmentVersionListSchema = z.object({
  versions: z.array(
    z.object({
      id: z.string(),
      number: z.number(),
      created_at: z.string(),
      source: source.describe('Address and command only for its owners.'),
      task_set: z.string().nullable().describe('Id of its uploaded task set; null: the tasks of its server.'),
      discovered_at: z.string().nullable().describe('When the service last read the offer of its server; null: never.'),
      variants: z.array(z.string()),
      tools: z.array(z.string()).describe('Of the default variant.'),
      num_tasks: z.number().nullable().describe('Of the default variant; null when its server does not say.'),
      deployed: z
        .object({
          deploy: z.string().nullable().describe('Id of the deploy that made it.'),
          protocol: z.string().nullable(),
          provider: z.string().nullable(),
          source_digest: z.string().nullable(),
          commit: z.string().nullable(),
        })
        .nullable()
        .describe('Of a version that was deployed here, for its owners; else null.'),
    }),
  ),
});
export type EnvironmentVersionList = z.output<typeof environmentVersionListSchema>;

export const environmentViewSchema = z.object({
  id: z.string(),
  owner: z.string(),
  name: z.string(),
  description: z.string(),
  is_private: z.boolean(),
  readme_content: z.string().nullable(),
  has_github_connection: z.boolean(),
  original_github_url: z.string().nullable(),
  split_types: z.array(z.string()),
  total_task_count: z.number().nullable(),
  compute_config: z.object({ cpu_count: z.number(), mem_gb: z.number() }),
  max_concurrency: z.number(),
  max_scale: z.number(),
  sessions: sessionPolicySchema.nullable().describe('The settings of its owner; null: none.'),
  created_at: z.string(),
  updated_at: z.string(),
  version: z.number().nullable().describe('Number of the version that `owner/name` selects; null for one without a server.'),
  source: source
    .extend({ kind: z.enum(['bundled', 'remote', 'openenv', 'mcp', 'hosted', 'none']) })
    .describe('Where it runs. Address and command only for its owners.'),
  status: z.enum(['ready', 'starting', 'unreachable', 'unlinked']).describe('Whether its server responds now.'),
  status_detail: z.string().nullable(),
});
export type EnvironmentView = z.infer<typeof environmentViewSchema>;
/** One environment, with what lists leave out. */
export const environmentDetailsSchema = environmentViewSchema.extend({
  report: environmentReportViewSchema.nullable().describe('Of the newest version that has one; null without any.'),
  can_manage: z.boolean().describe('Whether the caller may deploy, scale and change it.'),
  deployed: z.boolean().describe('Whether it was ever deployed here, so that it has channels and instances.'),
});
export type EnvironmentDetails = z.infer<typeof environmentDetailsSchema>;
export const storedReportSchema = z.object({ version: z.number().describe('Number of the version that has the report now.') });
export type StoredReport = z.infer<typeof storedReportSchema>;
export const environmentListSchema = z.object({ environments: z.array(environmentViewSchema), total: z.number() });
export type EnvironmentList = z.infer<typeof environmentListSchema>;

export const deletedEnvironmentSchema = z.object({ deleted: z.literal(true), owner: z.string(), name: z.string() });
export const environmentVariantsSchema = z.array(z.object({ id: z.string(), name: z.string() }));
export const requiredSecretsSchema = z.object({ secrets: z.array(z.string()) });

export const environmentDiscoverySchema = z.object({
  variants: z.array(
    z.object({
      name: z.string(),
      is_default: z.boolean(),
      splits: z.array(z.object({ name: z.string(), type: z.enum(SPLIT_TYPES), num_tasks: z.number().nullable() })),
      tools: (z.looseObject({}) as unknown as z.ZodType<ToolsAnswer>).describe('The answer of `GET /{env}/tools`.'),
    }),
  ),
  discovered_at: z.string(),
});
export type EnvironmentDiscoveryView = z.infer<typeof environmentDiscoverySchema>;

export const environmentListQuerySchema = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  offset: z.coerce.number().int().min(0).max(1_000_000).default(0),
  owner: z.string().max(64).refine(storable, NUL).optional(),
  search: z.string().max(200).refine(storable, NUL).optional(),
});
export type EnvironmentListQuery = z.infer<typeof environmentListQuerySchema>;

export const taskPageQuerySchema = z.object({
  split: z.string().min(1).max(200),
  variant: z.string().min(1).max(200).optional(),
  start: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(500).default(50),
});
export type TaskPageQuery = z.infer<typeof taskPageQuerySchema>;
export const taskPageSchema = z.object({
  split: z.string(),
  start: z.number(),
  total: z.number().nullable(),
  tasks: z.array(z.object({ index: z.number(), task_spec: z.unknown() })),
});
export type TaskPageView = z.infer<typeof taskPageSchema>;

export const apiUsageQuerySchema = z.object({
  days: z.coerce.number().int().min(1).max(90).default(30),
  granularity: z.enum(['total', 'daily']).default('total'),
  service: z.enum(['search', 'fetch']).optional(),
});
export type ApiUsageQuery = z.infer<typeof apiUsageQuerySchema>;

const figures = {
  rollouts: z.number(),
  scored: z.number(),
  reward_mean: z.number().nullable().describe('Over the scored rollouts; null without any.'),
};
export const environmentUsageSchema = z.object({
  environments: z.array(
    z.object({
      environment_id: z.string().nullable(),
      environment: z.string().nullable().describe('The name in the rollouts, for an environment that is not registered here.'),
      runs: z.number(),
      last_at: z.string().nullable(),
      ...figures,
    }),
  ),
  live_sessions: z.record(z.string(), z.number()).describe('By `owner/name`.'),
});
export const environmentRunsQuerySchema = z.object({ limit: z.coerce.number().int().min(1).max(500).default(200) });
export const environmentRunsSchema = z.object({
  runs: z.array(z.object({ id: z.string(), name: z.string(), last_step: z.number().nullable(), updated_at: z.string(), ...figures })),
});
export type EnvironmentUsage = z.infer<typeof environmentUsageSchema>;
export type EnvironmentRunsQuery = z.infer<typeof environmentRunsQuerySchema>;
export type EnvironmentRuns = z.infer<typeof environmentRunsSchema>;
