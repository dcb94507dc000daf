import path from 'node:path';
import { parseCidr, type PrivateUpstreams } from '@palestra/outbound';
import { z } from 'zod';
import { type KubernetesConfig, kubernetesSchema, kubernetesProblem, readKubernetes } from './kubernetes-config.ts';
import { type Limits, limitSchema, readLimits } from './limits.ts';
import { compileProxies } from './http/client-address.ts';
import { isExposed, keyWeakness } from './exposure.ts';

/** Environment variables, read once; everything else gets this object passed in. */
const flag = z.enum(['0', '1', 'true', 'false']).transform((text) => text === '1' || text === 'true');

/** Names separated by commas. `none` is the empty list. */
const names = z.string().transform((text) =>
  text === 'none'
    ? []
    : text
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== ''),
);

/** Origins of pages, such as `https://tools.example`. */
const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text;
const origins = names.refine((texts) => texts.every(isOrigin), 'must be origins by commas, as in https://tools.example');

/** CIDRs and addresses. */
const networks = names.superRefine((cidrs, context) => {
  const invalid = cidrs.find((cidr) => parseCidr(cidr) === null);
  if (invalid !== undefined)
    context.addIssue(`must be networks by commas, as in 10.1.0.0/16,10.2.0.7; ${JSON.stringify(invalid)} is not a network`);
});

const privateUpstreams = z.string().transform((text, context): PrivateUpstreams => {
  if (text === '1' || text === 'true') return 'allowed';
  if (text === '0' || text === 'false') return 'refused';
  const cidrs = text.split(',').map((cidr) => cidr.trim());
  const invalid = cidrs.find((cidr) => parseCidr(cidr) === null);
  if (invalid === undefined) return cidrs;
  context.addIssue(`must be 1, 0, or networks as in 10.0.0.0/8,fd00::/8; ${JSON.stringify(invalid)} is not a network`);
  return z.NEVER;
});

/** A folder, a wheel or a source archive. A name is refused: pip would ask the package index for it. */
const pythonPackage = z
  .string()
  .refine(path.isAbsolute, 'must be the absolute path of the folder or wheel of the Python package "palestra"');

const configSchema = z.object({
  HOST: z.string().default('127.0.0.1'),
  PORT: z.coerce.number().int().min(0).max(65_535).default(8080),
  PALESTRA_DATA_DIR: z.string().default('.palestra'),
  PALESTRA_API_KEY: z.string().min(8).optional(),
  PALESTRA_DEMO: flag.default(true),
  PALESTRA_ANONYMOUS: flag.default(false),
  PALESTRA_FALLBACK_DEPLOYMENT: z.string().optional(),
  PALESTRA_BUNDLED_ENVIRONMENTS: flag.default(true),
  PALESTRA_ALLOW_COMMANDS: flag.default(false),
  PALESTRA_HOSTING: z.enum(['auto', 'docker', 'process', 'kubernetes', 'off']).default('auto'),
  PALESTRA_DOCKER_HOST: z.url({ protocol: /^(?:unix|tcp)$/, error: 'must be unix:///path or tcp://host:port' }).optional(),
  PALESTRA_BASE_IMAGE_PYTHON: z.string().optional(),
  PALESTRA_BASE_IMAGE_NODE: z.string().optional(),
  PALESTRA_PYTHON_PACKAGE: pythonPackage.optional(),
  PALESTRA_DOCKER_NETWORK: z
    .string()
    .regex(/^[a-zA-Z0-9][\w.-]{0,127}$/, 'must be the name of a network of the engine')
    .optional(),
  PALESTRA_HOSTING_REACHABLE: networks.default([]),
  ...kubernetesSchema,
  PALESTRA_SANDBOX_HTTP_HOSTS: names.default([]),
  PALESTRA_ISOLATION: z.enum(['container', 'namespace', 'process']).optional(),
  PALESTRA_SANDBOX_IMAGE: z.string().optional(),
  PALESTRA_CONTAINER_ENGINE: z.string().optional(),
  PALESTRA_ALLOW_PRIVATE_UPSTREAMS: privateUpstreams.optional(),
  PALESTRA_WEAK_ISOLATION: flag.default(false),
  PALESTRA_SESSION_IDLE_S: z.coerce.number().positive().default(900),
  PALESTRA_SILENCE_S: z.coerce.number().positive().max(86_400).default(50),
  PALESTRA_REPLICA_URL: z.url().optional(),
  PALESTRA_SECRET_KEY: z.string().min(32).optional(),
  PALESTRA_PREVIOUS_SECRET_KEYS: names.pipe(z.array(z.string().min(32))).default([]),
  PALESTRA_DRAIN_S: z.coerce.number().min(0).default(30),
  ...limitSchema,
  PALESTRA_MAX_STORED_GB: z.coerce.number().positive().default(100),
  PALESTRA_QUEUE_LIMIT: z.coerce.number().int().min(0).default(1_000),
  PALESTRA_QUEUE_PATIENCE_S: z.coerce.number().positive().default(600),
  PALESTRA_PUBLIC_URL: z.url().optional(),
  PALESTRA_STRANGER_FAILURES_PER_MINUTE: z.coerce.number().int().positive().default(60),
  PALESTRA_STRANGER_REQUESTS_PER_MINUTE: z.coerce.number().int().positive().default(6_000),
  PALESTRA_TRUSTED_PROXIES: names.default([]),
  PALESTRA_ALLOWED_ORIGINS: origins.default([]),
  PALESTRA_METRICS_PUBLIC: flag.default(false),
  PALESTRA_AUDIT_RETENTION_DAYS: z.coerce.number().int().min(1).max(36_500).default(400),
  PALESTRA_JOBS: z.enum(['on', 'off']).default('on'),
  PALESTRA_WORKER_PORT: z.coerce.number().int().min(0).max(65_535).optional(),
  PALESTRA_MAX_BACKLOG: z.coerce.number().int().positive().default(20_000),
  PALESTRA_READ_WAIT_MS: z.coerce.number().int().min(0).max(60_000).default(50),
  PALESTRA_GAP_GRACE_S: z.coerce.number().min(0).max(3_600).default(30),
  PALESTRA_SEAL_FINISHED_S: z.coerce.number().min(0).default(60),
  PALESTRA_SEAL_SILENT_S: z.coerce.number().min(0).default(600),
  PALESTRA_LAKE: z.enum(['off', 'index', 'messages']).default('index'),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url().optional(),
  PALESTRA_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'silent']).default('warn'),
  DATABASE_URL: z.string().optional(),
  DATABASE_MIGRATION_URL: z.string().optional(),
  DATABASE_POOL_SIZE: z.coerce.number().int().min(2).default(16),
  S3_ENDPOINT: z.url().optional(),
  S3_BUCKET: z.string().optional(),
  S3_REGION: z.string().default('us-east-1'),
  S3_ACCESS_KEY_ID: z.string().optional(),
  S3_SECRET_ACCESS_KEY: z.string().optional(),
  S3_SIGNED_URLS: flag.default(true),
});

/**
 * Every variable that `readConfig` reads. It ignores all others, also misspelt ones: tests/deployment.spec.ts checks the deployment files.
 */
export const CONFIG_VARIABLES: readonly string[] = Object.keys(configSchema.shape);

/** Timings of MCP requests, milliseconds. Only tests change them. */
export interface McpTimings {
  /**
   * The response to a longer call is a stream, which the client can resume. The response to a shorter call is JSON, because mcp 2.x accepts
   * no stream event above 1 MiB.
   */
  jsonHoldMs: number;
  /** `jsonHoldMs` for clients that ask for progress notifications. */
  progressHoldMs: number;
  /** Interval of progress notifications during a call. The shortest timeout of the official clients is a minute. */
  beatMs: number;
  /** Interval of the comments that keep a stream open. */
  keepAliveMs: number;
  /** Delay before a client resumes a broken stream. It tries twice, so a restart of the service must fit into two delays. */
  retryMs: number;
  /** An open listening stream keeps its session alive. Interval of the check whether the session has ended. */
  listenPingMs: number;
}

export const MCP_TIMINGS: McpTimings = {
  jsonHoldMs: 5_000,
  progressHoldMs: 1_000,
  beatMs: 5_000,
  keepAliveMs: 15_000,
  retryMs: 2_000,
  listenPingMs: 20_000,
};

export interface Config {
  host: string;
  port: number;
  /** Absolute. */
  dataDir: string;
  apiKey: string | null;
  demo: boolean;
  anonymous: boolean;
  /** `owner/name` used for requests that name no deployment, or an unknown one. */
  fallbackDeployment: string | null;
  bundledEnvironments: boolean;
  /**
   * Which engine runs environments that are deployed here. `auto`: Docker or Podman if a socket answers, else processes if commands are
   * allowed. `dockerHost`: `unix://` or `tcp://`; null = DOCKER_HOST, else the usual sockets. `baseImages`: of folders without a
   * Dockerfile; null = those of the engine. `dockerNetwork`: of which this service is a member; null = ports of the engine's machine.
   * `reachable`: private networks that instances and builds may reach. `pythonPackage`: path of the Python package `palestra`; null = the source beside the service.
   * `sandboxHttpHosts`: hosts that sandboxes reach at any address, but only by plain HTTP.
   */
  hosting: {
    engine: 'auto' | 'docker' | 'process' | 'kubernetes' | 'off';
    dockerHost: string | null;
    baseImages: { python: string | null; node: string | null };
    dockerNetwork: string | null;
    reachable: string[];
    pythonPackage: string | null;
    kubernetes: KubernetesConfig;
    sandboxHttpHosts: readonly string[];
  };
  /** Users may register commands that this service starts: MCP servers on standard input and output. */
  allowCommands: boolean;
  /**
   * How coding_env isolates programs of models (docs/adr/0024). `level`: the only level to use; null = the strongest that the machine
   * offers. `image`: null = no containers. `engine`: null = the first container engine that is installed.
   */
  isolation: { level: 'container' | 'namespace' | 'process' | null; image: string | null; engine: string | null; allowWeak: boolean };
  /** Private addresses that URLs of users may reach; null = 'allowed' if the service listens on loopback, else 'refused'. */
  privateUpstreams: PrivateUpstreams | null;
  /** Default heartbeat timeout: a session without a ping or request for this long has lost its client. */
  sessionIdleTimeoutMs: number;
  /** Default for how long an ORS server may send nothing while a request waits for it. */
  silenceTimeoutMs: number;
  /** URL by which other replicas reach this one; null = the address it listens on. */
  replicaUrl: string | null;
  /** Key material shared by all replicas; null = a file in `dataDir`. */
  secretKey: string | null;
  /** Key material that still decrypts and verifies, but no longer encrypts or signs. */
  previousSecretKeys: string[];
  /** How long the service waits at SIGTERM for sessions that no other replica can continue. */
  drainMs: number;
  /** Maximum for each key and organisation; owners may set lower limits. */
  limits: Limits;
  /** Quota of one organisation for the uploaded files of its environments. */
  maxStoredBytes: number;
  /** How many clients may wait for a slot of one environment, and how long. */
  queue: { limit: number; patienceMs: number };
  mcp: McpTimings;
  /** Origin in links and signed URLs; null = `http://host:port` of the listening socket. */
  publicUrl: string | null;
  /** Which process runs background jobs (sealing, retention, deriving): a child of this one, this one, or neither, where workers run them. */
  jobs: 'child' | 'here' | 'off';
  /** Port on which a worker serves `/health` and `/metrics`; null = it serves neither. */
  workerPort: number | null;
  /** Uploads wait, and are refused after five seconds, while more rollouts than this wait for derivation. */
  maxBacklog: number;
  /** How long a read waits at most until what it shows is derived; then it answers with the figures that there are. */
  readWaitMs: number;
  /** A missing message may still arrive out of order. It counts as lost when its rollout received nothing for this long. */
  gapGraceMs: number;
  /** How long a rollout must be quiet before it is sealed: after it reported its end, and without such a report. */
  sealing: { finishedMs: number; silentMs: number };
  /** Sealed rollouts as Parquet in the object store (docs/lake.md): none, narrow rows, or rows with their messages. */
  lake: 'off' | 'index' | 'messages';
  /** Per address and minute: requests with invalid credentials, and requests without credentials. */
  unauthenticatedLimits: { failures: number; requests: number };
  /** Proxies whose `X-Forwarded-For` is trusted: IP addresses, CIDRs, or `loopback`, `linklocal`, `uniquelocal`. */
  trustedProxies: string[];
  /** Origins of pages that may use the API with a key; browsers keep it from all others. */
  allowedOrigins: string[];
  /** `GET /metrics` needs no key. */
  metricsPublic: boolean;
  /** Age at which entries of the audit log are deleted. */
  auditRetentionDays: number;
  /** Base URL of an OTLP/HTTP collector for traces; null = no traces. */
  otlpEndpoint: string | null;
  logLevel: string;
  /** null = the embedded PostgreSQL under `dataDir`. */
  databaseUrl: string | null;
  /** Connects as a role that may change the schema; null = `databaseUrl`. */
  databaseMigrationUrl: string | null;
  databasePoolSize: number;
  /** null = files under `dataDir/blobs`. */
  s3: { endpoint: string | null; bucket: string; region: string; accessKeyId: string | null; secretAccessKey: string | null } | null;
  /** Clients reach the S3 server: files have its signed URLs. False: signed URLs lead to the service. */
  s3SignedUrls: boolean;
}

export const CONFIG = Symbol('Config');

/** A variable is invalid. The message is one line that names it. */
export class ConfigError extends Error {}

export function readConfig(env: NodeJS.ProcessEnv, resolvePath: (path: string) => string): Config {
  const parsed = configSchema.safeParse(Object.fromEntries(Object.entries(env).filter(([, value]) => value !== '')));
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw new ConfigError(`${issue.path.join('.')}: ${issue.message}`);
  }
  const value = parsed.data;
  try {
    compileProxies(value.PALESTRA_TRUSTED_PROXIES);
  } catch (error) {
    throw new ConfigError(`PALESTRA_TRUSTED_PROXIES: ${(error as Error).message}`, { cause: error });
  }
  const apiKey = value.PALESTRA_API_KEY ?? null;
  const weakness = apiKey !== null && isExposed(value.HOST, value.PALESTRA_PUBLIC_URL) ? keyWeakness(apiKey) : null;
  if (weakness !== null) throw new ConfigError(`PALESTRA_API_KEY: ${weakness}`);
  if (value.PALESTRA_HOSTING === 'process' && !value.PALESTRA_ALLOW_COMMANDS)
    throw new ConfigError('PALESTRA_HOSTING: "process" runs programs of authors as this user: set PALESTRA_ALLOW_COMMANDS=1, too');
  const problem = value.PALESTRA_HOSTING === 'kubernetes' ? kubernetesProblem(value) : null;
  if (problem !== null) throw new ConfigError(`PALESTRA_HOSTING: ${problem}`);
  return {
    host: value.HOST,
    port: value.PORT,
    dataDir: resolvePath(value.PALESTRA_DATA_DIR),
    apiKey,
    demo: value.PALESTRA_DEMO,
    anonymous: value.PALESTRA_ANONYMOUS,
    fallbackDeployment: value.PALESTRA_FALLBACK_DEPLOYMENT ?? null,
    bundledEnvironments: value.PALESTRA_BUNDLED_ENVIRONMENTS,
    allowCommands: value.PALESTRA_ALLOW_COMMANDS,
    hosting: {
      engine: value.PALESTRA_HOSTING,
      dockerHost: value.PALESTRA_DOCKER_HOST ?? null,
      baseImages: { python: value.PALESTRA_BASE_IMAGE_PYTHON ?? null, node: value.PALESTRA_BASE_IMAGE_NODE ?? null },
      dockerNetwork: value.PALESTRA_DOCKER_NETWORK ?? null,
      reachable: value.PALESTRA_HOSTING_REACHABLE,
      pythonPackage: value.PALESTRA_PYTHON_PACKAGE ?? null,
      kubernetes: readKubernetes(value),
      sandboxHttpHosts: value.PALESTRA_SANDBOX_HTTP_HOSTS,
    },
    isolation: {
      level: value.PALESTRA_ISOLATION ?? null,
      image: value.PALESTRA_SANDBOX_IMAGE ?? null,
      engine: value.PALESTRA_CONTAINER_ENGINE ?? null,
      allowWeak: value.PALESTRA_WEAK_ISOLATION,
    },
    privateUpstreams: value.PALESTRA_ALLOW_PRIVATE_UPSTREAMS ?? null,
    sessionIdleTimeoutMs: value.PALESTRA_SESSION_IDLE_S * 1000,
    silenceTimeoutMs: value.PALESTRA_SILENCE_S * 1000,
    replicaUrl: value.PALESTRA_REPLICA_URL ?? null,
    secretKey: value.PALESTRA_SECRET_KEY ?? null,
    previousSecretKeys: value.PALESTRA_PREVIOUS_SECRET_KEYS,
    drainMs: value.PALESTRA_DRAIN_S * 1000,
    limits: readLimits(value),
    maxStoredBytes: Math.floor(value.PALESTRA_MAX_STORED_GB * 1e9),
    queue: { limit: value.PALESTRA_QUEUE_LIMIT, patienceMs: value.PALESTRA_QUEUE_PATIENCE_S * 1000 },
    mcp: MCP_TIMINGS,
    publicUrl: value.PALESTRA_PUBLIC_URL ?? null,
    jobs: value.PALESTRA_JOBS === 'on' ? 'child' : 'off',
    workerPort: value.PALESTRA_WORKER_PORT ?? null,
    maxBacklog: value.PALESTRA_MAX_BACKLOG,
    readWaitMs: value.PALESTRA_READ_WAIT_MS,
    gapGraceMs: value.PALESTRA_GAP_GRACE_S * 1000,
    sealing: { finishedMs: value.PALESTRA_SEAL_FINISHED_S * 1000, silentMs: value.PALESTRA_SEAL_SILENT_S * 1000 },
    lake: value.PALESTRA_LAKE,
    unauthenticatedLimits: { failures: value.PALESTRA_STRANGER_FAILURES_PER_MINUTE, requests: value.PALESTRA_STRANGER_REQUESTS_PER_MINUTE },
    trustedProxies: value.PALESTRA_TRUSTED_PROXIES,
    allowedOrigins: value.PALESTRA_ALLOWED_ORIGINS,
    metricsPublic: value.PALESTRA_METRICS_PUBLIC,
    auditRetentionDays: value.PALESTRA_AUDIT_RETENTION_DAYS,
    otlpEndpoint: value.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
    logLevel: value.PALESTRA_LOG_LEVEL,
    databaseUrl: value.DATABASE_URL ?? null,
    databaseMigrationUrl: value.DATABASE_MIGRATION_URL ?? null,
    databasePoolSize: value.DATABASE_POOL_SIZE,
    s3: value.S3_BUCKET
      ? {
          endpoint: value.S3_ENDPOINT ?? null,
          bucket: value.S3_BUCKET,
          region: value.S3_REGION,
          accessKeyId: value.S3_ACCESS_KEY_ID ?? null,
          secretAccessKey: value.S3_SECRET_ACCESS_KEY ?? null,
        }
      : null,
    s3SignedUrls: value.S3_SIGNED_URLS,
  };
}
