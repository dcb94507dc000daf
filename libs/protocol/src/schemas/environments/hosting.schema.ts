import { z } from 'zod';
import { DEPLOY_STATES, HOSTING_PROVIDERS, INSTANCE_STATES, ISOLATIONS, LOG_SEVERITIES } from '../../hosting-vocabulary.ts';
import { httpUrl } from './urls.ts';

/** Bodies of the routes by which environments are deployed, scaled and rolled back. */

const storable = (text: string) => !text.includes('\0');
const NUL = { error: 'must not hold NUL characters' };
const text = (max: number) => z.string().min(1).max(max).refine(storable, NUL);

/** `https`, `http`, `ssh` or `git`, without credentials: those are secrets of the environment. SSH has a user name. */
function isGitUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, pathname } = new URL(text);
  if (!isDecodable(username + pathname)) return false;
  return /^(?:https?|ssh|git):$/.test(protocol) && password === '' && (username === '' || protocol === 'ssh:');
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
export const gitUrl = text(2_000).refine(isGitUrl, {
  error:
    'url must be an https, http, ssh or git URL without credentials, such as https://host/team/envs.git or ssh://git@host/team/envs.git',
});
export const gitRef = text(250).refine((ref) => !ref.startsWith('-') && !ref.includes('..'), {
  error: 'ref must be a branch, a tag or a commit',
});
export const subdirectory = text(1_000).refine((folder) => !folder.startsWith('/') && !folder.split('/').includes('..'), {
  error: 'subdirectory must be a folder inside the repository',
});
const image = text(500).regex(/^[\w.][\w.:/@-]*$/, { error: 'image must be a reference like registry.example/team/name:tag' });

export const channelName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,31}$/, { error: 'channel must be 1 to 32 lower-case letters, digits or "-"' });
const host = z.string().regex(/^(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*$/i, { error: 'must be a host name, or *.domain' });

export const hostingSettingsSchema = z.strictObject({
  provider: z.enum(HOSTING_PROVIDERS).nullish().describe('Null: what the operator chose.'),
  min_warm: z.int().min(0).max(100).default(0).describe('Instances that also run without sessions.'),
  max: z.int().min(1).max(1_000).default(4).describe('Most instances of a version.'),
  concurrency: z.int().min(1).max(10_000).default(64).describe('Sessions of one instance.'),
  idle_s: z.int().min(0).max(86_400).default(300).describe('An instance without sessions ends after this time.'),
  drain_s: z.int().min(0).max(86_400).default(3_600).describe('A draining instance with sessions ends after this time.'),
  start_timeout_s: z.int().min(1).max(3_600).default(120).describe('An instance that does not answer within this time has failed.'),
  cpus: z.number().min(0.1).max(256).default(1),
  memory_mb: z.int().min(64).max(4_194_304).default(1_024),
  pids: z.int().min(16).max(100_000).default(512),
  disk_mb: z.int().min(16).max(1_048_576).default(512).describe('Of writable temporary files.'),
  gpus: z.int().min(0).max(16).default(0),
  isolation: z.enum(ISOLATIONS).nullish().describe('Least isolation; null: what the provider has.'),
  egress: z
    .union([z.enum(['none', 'open']), z.array(host).max(100)])
    .default('none')
    .describe('Addresses that its instances may connect to: none, all public ones, or these hosts.'),
  variables: z.record(z.string().regex(/^[A-Za-z_]\w{0,127}$/), z.string().max(10_000).refine(storable, NUL)).default({}),
});
export type HostingSettings = z.output<typeof hostingSettingsSchema>;
export type HostingSettingsInput = z.input<typeof hostingSettingsSchema>;

/** What this service can run, for forms. */
export const hostingOfferSchema = z.object({
  hosts: z.boolean().describe('Whether it runs environments now.'),
  detail: z.string().nullable().describe('Why it does not.'),
  can_deploy: z.boolean().describe('Whether the credential of the caller may deploy.'),
  provider: z.string().nullable().describe('Used where the settings name none.'),
  isolation: z.array(z.enum(ISOLATIONS)).describe('Levels that the provider has.'),
  egress: z.array(z.enum(['none', 'open', 'hosts'])).describe('Network rules that the provider enforces.'),
  limits: z.boolean().describe('Whether limits of processors, memory, processes and disk are enforced.'),
  gpus: z.boolean(),
  defaults: hostingSettingsSchema,
});
export type HostingOffer = z.output<typeof hostingOfferSchema>;

export const deploySourceSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('git'), url: gitUrl, ref: gitRef.nullish(), subdirectory: subdirectory.nullish() }),
  z.strictObject({ kind: z.literal('image'), image, port: z.int().min(1).max(65_535).nullish() }),
  z.strictObject({ kind: z.literal('url'), urls: z.array(httpUrl()).min(1).max(64) }),
]);
export type DeploySource = z.output<typeof deploySourceSchema> | { kind: 'folder' };

/** Options of every deploy: in the body of a JSON request, in the query of an upload. */
export const deployOptionsSchema = z.strictObject({
  channel: channelName
    .or(z.literal(''))
    .nullish()
    .describe('Promoted when the version is ready. Default `stable`; null, or empty in a query: none.'),
  create: z.stringbool().or(z.boolean()).default(false).describe('Create the environment if it does not exist.'),
  private: z.stringbool().or(z.boolean()).default(true).describe('Of an environment that is created.'),
  dockerfile: text(500).optional().describe('Path in the folder. Default `Dockerfile`, then `server/Dockerfile`.'),
});
export type DeployOptionsInput = z.input<typeof deployOptionsSchema>;
export type DeployOptions = z.output<typeof deployOptionsSchema>;

export const createDeploySchema = deployOptionsSchema.extend({ source: deploySourceSchema, settings: hostingSettingsSchema.optional() });
export type CreateDeployInput = z.input<typeof createDeploySchema>;
export type CreateDeploy = z.output<typeof createDeploySchema>;

/** Query of an uploaded folder: the options, and the settings as JSON text. */
export const uploadDeployQuerySchema = deployOptionsSchema.extend({
  settings: z
    .string()
    .max(1_000_000)
    .transform((json, context): unknown => {
      try {
        return JSON.parse(json);
      } catch {
        context.addIssue('settings must be JSON');
        return z.NEVER;
      }
    })
    .pipe(hostingSettingsSchema)
    .optional(),
});
export type UploadDeployQuery = z.output<typeof uploadDeployQuerySchema>;

export const deploySchema = z.object({
  id: z.string(),
  environment: z.string().describe('`owner/name`'),
  state: z.enum(DEPLOY_STATES),
  source: z.looseObject({ kind: z.enum(['folder', 'git', 'image', 'url']) }),
  source_digest: z.string().nullable(),
  commit: z.string().nullable(),
  channel: z.string().nullable(),
  version: z.number().nullable().describe('Number of the version that it made, or found.'),
  reused: z.boolean().describe('The same source was deployed before, so the version is an earlier one.'),
  error: z.object({ code: z.string(), detail: z.string(), line: z.number().nullable() }).nullable(),
  author: z.string(),
  created_at: z.string(),
  started_at: z.string().nullable(),
  ended_at: z.string().nullable(),
});
export type DeployView = z.output<typeof deploySchema>;
export const deployListSchema = z.object({ deploys: z.array(deploySchema) });
export type DeployList = z.output<typeof deployListSchema>;

export const hostingLogQuerySchema = z.object({
  after: z.coerce.number().int().min(0).default(0).describe('Only lines after this `seq`.'),
  limit: z.coerce.number().int().min(1).max(10_000).default(1_000),
  tail: z.coerce.number().int().min(1).max(10_000).optional().describe('Begin with the last so many of these lines.'),
  follow: z.stringbool().default(false).describe('Keep the response open, and send lines as they are written.'),
  severity: z.enum(LOG_SEVERITIES).optional().describe('Least severity.'),
  q: z.string().min(1).max(200).optional().describe('Only lines with this text, in any case.'),
  instance: z.uuid().optional(),
  version: z.coerce.number().int().min(1).max(2_147_483_647).optional(),
});
export type HostingLogQuery = z.output<typeof hostingLogQuerySchema>;
/** One line of an NDJSON answer. */
export const hostingLogLineSchema = z.object({
  seq: z.number(),
  source: z.string().describe('Id of the deploy or the instance.'),
  at: z.string(),
  stream: z.enum(['stdout', 'stderr', 'palestra']),
  severity: z.enum(LOG_SEVERITIES),
  text: z.string(),
});
export type HostingLogLine = z.output<typeof hostingLogLineSchema>;

export const instanceSchema = z.object({
  id: z.string(),
  version: z.number().nullable().describe('Null: the version was deleted.'),
  provider: z.string(),
  state: z.enum(INSTANCE_STATES),
  detail: z.string().nullable(),
  sessions: z.number(),
  restarts: z.number(),
  cpus: z.number().nullable(),
  memory_mb: z.number().nullable(),
  cold_start_ms: z.number().nullable().describe('From the start to the first answer.'),
  created_at: z.string(),
  ready_at: z.string().nullable(),
  stopped_at: z.string().nullable(),
});
export type InstanceView = z.output<typeof instanceSchema>;
export const instanceListSchema = z.object({
  instances: z.array(instanceSchema),
  waiting: z.number().describe('Sessions that wait for a place.'),
  load: z.number().describe('Instances that the sessions need: those that run or wait, divided by `concurrency`.'),
  queue_ms: z.number().nullable().describe('Median time in the queue of the last hour.'),
});
export type InstanceList = z.output<typeof instanceListSchema>;

export const channelSchema = z.object({
  name: z.string(),
  version: z.number(),
  previous_version: z.number().nullable(),
  canary_version: z.number().nullable(),
  canary_percent: z.number(),
  reason: z.string().nullable().describe('Who changed it last, or what did. Null for other organisations.'),
  updated_at: z.string(),
});
export type ChannelView = z.output<typeof channelSchema>;
export const channelListSchema = z.object({ channels: z.array(channelSchema) });
export type ChannelList = z.output<typeof channelListSchema>;
export const promoteSchema = z.strictObject({
  version: z.int().min(1),
  channel: channelName.default('stable'),
  percent: z.int().min(1).max(100).default(100).describe('Share of new sessions; under 100 the version is a canary.'),
});
export type Promote = z.output<typeof promoteSchema>;
export type PromoteInput = z.input<typeof promoteSchema>;
export const rollbackSchema = z.strictObject({ channel: channelName.default('stable') });
export type Rollback = z.output<typeof rollbackSchema>;
export type RollbackInput = z.input<typeof rollbackSchema>;

const change = z.object({ name: z.string(), change: z.enum(['added', 'removed', 'changed']), detail: z.string() });
export const versionDiffSchema = z.object({
  from: z.number(),
  to: z.number(),
  tools: z.array(change),
  tasks: z.array(change).describe('Per split.'),
  prompt: z.object({ from: z.string(), to: z.string() }).nullable().describe('Of the probe; null: equal.'),
  rewards: z
    .object({ from: z.array(z.number().nullable()), to: z.array(z.number().nullable()) })
    .nullable()
    .describe('Of the probe; null: equal.'),
  breaking: z.array(z.string()).describe('What fails for clients that were written for `from`.'),
});
export type VersionDiff = z.output<typeof versionDiffSchema>;

export const secretListSchema = z.object({ secrets: z.array(z.object({ name: z.string(), updated_at: z.string() })) });
export type SecretList = z.output<typeof secretListSchema>;
export const secretValueSchema = z.strictObject({ value: z.string().max(100_000).refine(storable, NUL) });
export type SecretValue = z.output<typeof secretValueSchema>;
