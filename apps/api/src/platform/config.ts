import { parseCidr, type PrivateUpstreams } from '@palestra/outbound';
import { z } from 'zod';
import { type Limits, limitSchema, readLimits } from './limits.ts';
import { compileProxies } from './http/client-address.ts';
import { isExposed, keyWeakness } from './exposure.ts';

/** Environment variables, read once; everything else gets this object passed in. */
const flag = z.enum(['0', '1', 'true', 'false']).transform((text) => text === '1' || text === 'true');

/** By commas; `none` is none. */
const names = z.string().transform((text) =>
  text === 'none'
    ? []
    : text
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== ''),
);

const privateUpstreams = z.string().transform((text, context): PrivateUpstreams => {
  if (text === '1' || text === 'true') return 'allowed';
  if (text === '0' || text === 'false') return 'refused';
  const cidrs = text.split(',').map((cidr) => cidr.trim());
  const wrong = cidrs.find((cidr) => parseCidr(cidr) === null);
  if (wrong === undefined) return cidrs;
  context.addIssue(`must be 1, 0, or networks as in 10.0.0.0/8,fd00::/8; ${JSON.stringify(wrong)} is none`);
  return z.NEVER;
});

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
  PALESTRA_METRICS_PUBLIC: flag.default(false),
  PALESTRA_AUDIT_RETENTION_DAYS: z.coerce.number().int().min(1).max(36_500).default(400),
  PALESTRA_JOBS: z.enum(['on', 'off']).default('on'),
  PALESTRA_WORKER_PORT: z.coerce.number().int().min(0).max(65_535).optional(),
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
});

/** Every variable that `readConfig` reads. Others are ignored, so that a misspelt one does nothing: tests/deployment.spec.ts compares. */
export const CONFIG_VARIABLES: readonly string[] = Object.keys(configSchema.shape);

/** How long requests over MCP are held, and how often their clients hear something; milliseconds. Only tests set others. */
export interface McpTimings {
  /**
   * A call that takes longer is answered as a stream, which stays open and can be taken up again. Shorter ones are JSON: mcp 2.x takes no
   * stream events above 1 MiB.
   */
  jsonHoldMs: number;
  /** The same, where the client wants to hear of the progress. */
  progressHoldMs: number;
  /** A client that waits for a call hears of progress this often; the shortest patience of the official clients is a minute. */
  beatMs: number;
  /** Comments that keep a stream open. */
  keepAliveMs: number;
  /** How long a client waits before it takes up a stream that broke. It tries twice: a restart must fit in. */
  retryMs: number;
  /** While a client listens, its session is alive; we look this often whether it has ended. */
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
  /** Users may register programs, which this service then starts: MCP servers on standard input and output. */
  allowCommands: boolean;
  /**
   * How coding_env isolates what a model wrote (docs/adr/0024): the only level that may be used, null = the strongest that the machine offers; the image
   * and the engine of containers, null = none, and the first that is installed.
   */
  isolation: { level: 'container' | 'namespace' | 'process' | null; image: string | null; engine: string | null; allowWeak: boolean };
  /** Where URLs of users may lead beside public addresses; null = 'allowed' while the service listens on loopback, else 'refused'. */
  privateUpstreams: PrivateUpstreams | null;
  /** Default heartbeat timeout: a session without ping or request for so long has lost its client. */
  sessionIdleTimeoutMs: number;
  /** Default of how long an ORS server may show no sign of life, though something waits for it. */
  silenceTimeoutMs: number;
  /** Where other replicas reach this one; null = the address it listens at. */
  replicaUrl: string | null;
  /** Key material shared by all replicas; null = a file in `dataDir`. */
  secretKey: string | null;
  /** Key material that still opens and verifies, but neither seals nor signs. */
  previousSecretKeys: string[];
  /** At SIGTERM, how long sessions that no other replica could go on with are waited for. */
  drainMs: number;
  /** What keys and organisations may have at most; owners may set less. */
  limits: Limits;
  /** Uploaded files of environments, of one organisation together. */
  maxStoredBytes: number;
  /** Clients that may wait for a slot of one environment at the same time, and how long. */
  queue: { limit: number; patienceMs: number };
  mcp: McpTimings;
  /** Origin in links and signed URLs; null = `http://host:port` as bound. */
  publicUrl: string | null;
  /** This process runs background work (sealing, retention, roll-ups); off where workers do. */
  jobs: boolean;
  /** Where a worker answers `/health` and `/metrics`; null = nowhere. */
  workerPort: number | null;
  /** A message that is not here although a later one is may still come: it is missing when nothing of its rollout came for so long. */
  gapGraceMs: number;
  /** Rollouts are sealed when they said that they are finished, or said nothing, and were quiet for so long. */
  sealing: { finishedMs: number; silentMs: number };
  /** Sealed rollouts as Parquet on the object store (docs/lake.md): none, narrow rows, or with their messages. */
  lake: 'off' | 'index' | 'messages';
  /** Of one address, a minute: wrong credentials, and requests without any. */
  unauthenticatedLimits: { failures: number; requests: number };
  /** Whose `X-Forwarded-For` counts: IP addresses, CIDRs, or `loopback`, `linklocal`, `uniquelocal`. */
  trustedProxies: string[];
  /** `GET /metrics` needs no key. */
  metricsPublic: boolean;
  /** Events of the audit log are deleted when they are so old. */
  auditRetentionDays: number;
  /** Base URL of an OTLP/HTTP collector for traces; null = no traces. */
  otlpEndpoint: string | null;
  logLevel: string;
  /** null = the embedded PostgreSQL under `dataDir`. */
  databaseUrl: string | null;
  /** A role that may change the schema; null = that of `databaseUrl`. */
  databaseMigrationUrl: string | null;
  databasePoolSize: number;
  /** null = files under `dataDir/blobs`. */
  s3: { endpoint: string | null; bucket: string; region: string; accessKeyId: string | null; secretAccessKey: string | null } | null;
}

export const CONFIG = Symbol('Config');

/** Raised for a bad variable; its message is one line that names it. */
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
    jobs: value.PALESTRA_JOBS === 'on',
    workerPort: value.PALESTRA_WORKER_PORT ?? null,
    gapGraceMs: value.PALESTRA_GAP_GRACE_S * 1000,
    sealing: { finishedMs: value.PALESTRA_SEAL_FINISHED_S * 1000, silentMs: value.PALESTRA_SEAL_SILENT_S * 1000 },
    lake: value.PALESTRA_LAKE,
    unauthenticatedLimits: { failures: value.PALESTRA_STRANGER_FAILURES_PER_MINUTE, requests: value.PALESTRA_STRANGER_REQUESTS_PER_MINUTE },
    trustedProxies: value.PALESTRA_TRUSTED_PROXIES,
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
  };
}
