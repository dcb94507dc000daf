import { parse, TomlError } from 'smol-toml';
import { z } from 'zod';
import { publicImageName } from '../docker/build/image-name.ts';
import { HostingError } from '../provider/hosting-error.ts';
import { sourceInvalid } from '../source/source-limits.ts';

/**
 * `task.toml`, as `harbor.models.task.config` of Harbor 0.25 reads it. Unknown fields are ignored, as there. What would change the meaning of a
 * task and cannot be had here is refused by `readTaskConfig`.
 */
const seconds = z.number().positive().max(86_400);
const variables = z.record(z.string().regex(/^[A-Za-z_]\w*$/, 'expected the name of a variable'), z.string());
const user = z.union([z.string().regex(/^[\w.][\w.-]*(?::[\w.][\w.-]*)?$/, 'expected a user'), z.int().nonnegative()]).nullish();
const absolutePath = z.string().regex(/^\//, 'expected an absolute path');
const image = z.string().superRefine((name, context) => {
  try {
    publicImageName(name);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message });
  }
});
const network = { network_mode: z.enum(['no-network', 'public', 'allowlist']).nullish(), allowed_hosts: z.array(z.string()).nullish() };

/** `1G`, `512M` or `2048K`, of the fields `memory` and `storage` of Harbor before 0.2. */
const size = z
  .string()
  .regex(/^\s*\d+(?:\.\d+)?[GMK]\s*$/i, 'expected a size such as "2G" or "512M"')
  .transform((text) => {
    const unit = text.trim().at(-1)!.toUpperCase();
    const factor = unit === 'G' ? 1_024 : unit === 'M' ? 1 : 1 / 1_024;
    return Math.floor(Number.parseFloat(text) * factor);
  });

const healthcheckSchema = z.looseObject({
  command: z.string().min(1),
  interval_sec: z.number().nonnegative().max(600).default(5),
  timeout_sec: seconds.default(30),
  start_period_sec: z.number().nonnegative().max(3_600).default(0),
  start_interval_sec: z.number().nonnegative().max(600).default(5),
  retries: z.int().positive().max(1_000).default(3),
});
export type Healthcheck = z.output<typeof healthcheckSchema>;

const agentSchema = z.looseObject({ timeout_sec: seconds.nullish(), user, ...network });
const verifierSchema = z.looseObject({
  timeout_sec: seconds.default(600),
  env: variables.default({}),
  user,
  ...network,
  environment_mode: z.enum(['shared', 'separate']).nullish(),
  environment: z.unknown().optional(),
  collect: z.array(z.unknown()).default([]),
  import_path: z.unknown().optional(),
});
const environmentSchema = z.looseObject({
  build_timeout_sec: seconds.default(600),
  docker_image: image.nullish(),
  os: z
    .string()
    .transform((name) => name.toLowerCase())
    .pipe(z.enum(['linux', 'windows']))
    .default('linux'),
  cpus: z.number().positive().max(1_024).nullish(),
  memory_mb: z.int().positive().nullish(),
  memory: size.nullish(),
  storage_mb: z.int().positive().nullish(),
  storage: size.nullish(),
  gpus: z.int().nonnegative().nullish(),
  tpu: z.unknown().optional(),
  mcp_servers: z.array(z.unknown()).default([]),
  env: variables.default({}),
  healthcheck: healthcheckSchema.nullish(),
  workdir: absolutePath.nullish(),
  ...network,
  allow_internet: z.boolean().nullish(),
});

/** A portable name of a folder, as `harbor.models.task.step_name` checks it. */
const stepName = z
  .string()
  .max(255)
  // oxlint-disable-next-line no-control-regex -- Harbor refuses control characters in names.
  .regex(/^[^<>:"/\\|?*\u0000-\u001f\u007f]*[^<>:"/\\|?*\u0000-\u001f\u007f. ]$/, 'expected the name of a folder below steps/');
const stepSchema = z.looseObject({
  name: stepName,
  agent: agentSchema.prefault({}),
  verifier: verifierSchema.partial({ timeout_sec: true }).extend({ timeout_sec: seconds.optional() }).prefault({}),
  min_reward: z.union([z.number(), z.record(z.string(), z.number())]).nullish(),
  healthcheck: healthcheckSchema.nullish(),
});

const taskSchema = z.looseObject({
  task: z.looseObject({ name: z.string(), description: z.string().default(''), keywords: z.array(z.string()).default([]) }).nullish(),
  metadata: z.record(z.string(), z.unknown()).default({}),
  agent: agentSchema.prefault({}),
  verifier: verifierSchema.prefault({}),
  environment: environmentSchema.prefault({}),
  solution: z.looseObject({ env: variables.default({}) }).prefault({}),
  multi_step_reward_strategy: z.enum(['mean', 'final']).nullish(),
  steps: z.array(stepSchema).max(100).nullish(),
});
export type TaskConfig = z.output<typeof taskSchema>;

/** Which hosts a task wants to reach: all, none, or some. */
export type WantedNetwork = { kind: 'open' } | { kind: 'none' } | { kind: 'hosts'; hosts: readonly string[] };

/** Throws `source_invalid` for a file that Harbor would refuse, `hosting_unsupported` for what cannot be had here. `file`: its name in errors. */
export function readTaskConfig(text: string, file: string): TaskConfig {
  let raw: unknown;
  try {
    raw = parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw sourceInvalid(`${file}: line ${error.line}: ${error.message.split('\n')[0]}`, error);
  }
  const read = taskSchema.safeParse(raw);
  if (!read.success) {
    const [issue] = read.error.issues;
    throw sourceInvalid(`${file}: ${issue?.path.join('.')}: ${issue?.message}`);
  }
  const config = read.data;
  const names = (config.steps ?? []).map(({ name }) => name.normalize('NFC').toLowerCase());
  if (new Set(names).size < names.length) throw sourceInvalid(`${file}: two steps have the same name.`);
  const refused = unsupported(config);
  if (refused !== null) throw new HostingError('hosting_unsupported', `${file}: ${refused}`);
  networkOf(config, file);
  return config;
}

function unsupported({ environment, agent, verifier, steps }: TaskConfig): string | null {
  if (environment.os === 'windows') return 'environment.os is "windows". Containers here are Linux.';
  if ((environment.gpus ?? 0) > 0 || environment.tpu != null) return 'the task needs a GPU or TPU, which containers here do not have.';
  if (environment.mcp_servers.length > 0) return 'environment.mcp_servers is not supported.';
  for (const one of [verifier, ...(steps ?? []).map((step) => step.verifier)]) {
    if (one.environment_mode === 'separate' || one.environment !== undefined)
      return 'a separate container for the verifier is not supported. Set verifier.environment_mode to "shared".';
    if (one.collect.length > 0) return 'verifier.collect is not supported.';
    if (one.import_path !== undefined) return 'verifier.import_path is not supported. Write tests/test.sh.';
  }
  for (const one of [agent, verifier, ...(steps ?? []).flatMap((step) => [step.agent, step.verifier])]) {
    if (one.network_mode != null && one.network_mode !== modeOf(environment))
      return 'the network of agent and verifier must be that of [environment]; it cannot change during an episode.';
  }
  return null;
}

/** `allow_internet` is the field of Harbor before `network_mode`. */
const modeOf = ({ network_mode: mode, allowed_hosts: hosts, allow_internet: old }: TaskConfig['environment']) =>
  mode ?? (hosts == null && old === false ? 'no-network' : 'public');

/** The network of a task. Throws `source_invalid` for hosts that Harbor refuses, `hosting_unsupported` for addresses. */
export function networkOf({ environment }: TaskConfig, file: string): WantedNetwork {
  const mode = modeOf(environment);
  const hosts = environment.allowed_hosts ?? [];
  if (mode !== 'allowlist') {
    if (hosts.length > 0) throw sourceInvalid(`${file}: environment.allowed_hosts needs network_mode = "allowlist".`);
    return { kind: mode === 'public' ? 'open' : 'none' };
  }
  return { kind: 'hosts', hosts: hosts.map((host) => hostName(host, file)) };
}

function hostName(text: string, file: string): string {
  const host = text.trim().toLowerCase().replace(/\.$/, '');
  if (/^[\d.]+(?:\/\d+)?$/.test(host) || /^[\da-f:.]*:[\da-f:.]*(?:\/\d+)?$/.test(host))
    throw new HostingError(
      'hosting_unsupported',
      `${file}: environment.allowed_hosts has the address ${JSON.stringify(text)}. Name hosts.`,
    );
  if (/^(?:\*\.)?[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/.test(host)) return host;
  throw sourceInvalid(`${file}: environment.allowed_hosts: ${JSON.stringify(text)} is neither a host nor "*." and a domain.`);
}
