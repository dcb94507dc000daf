import { z } from 'zod';

/** Environment variables, read once; everything else gets this object passed in. */
const flag = z.enum(['0', '1', 'true', 'false']).transform((text) => text === '1' || text === 'true');

const configSchema = z.object({
  HOST: z.string().default('127.0.0.1'),
  PORT: z.coerce.number().int().min(0).max(65_535).default(8080),
  PALESTRA_DATA_DIR: z.string().default('.palestra'),
  PALESTRA_API_KEY: z.string().min(8).optional(),
  PALESTRA_DEMO: flag.default(true),
  PALESTRA_ANONYMOUS: flag.default(false),
  PALESTRA_FALLBACK_DEPLOYMENT: z.string().optional(),
  PALESTRA_BUNDLED_ENVIRONMENTS: flag.default(true),
  PALESTRA_SESSION_IDLE_S: z.coerce.number().positive().default(900),
  PALESTRA_PUBLIC_URL: z.url().optional(),
  PALESTRA_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'silent']).default('warn'),
  DATABASE_URL: z.string().optional(),
  DATABASE_POOL_SIZE: z.coerce.number().int().min(2).default(16),
  S3_ENDPOINT: z.url().optional(),
  S3_BUCKET: z.string().optional(),
  S3_REGION: z.string().default('us-east-1'),
  S3_ACCESS_KEY_ID: z.string().optional(),
  S3_SECRET_ACCESS_KEY: z.string().optional(),
});

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
  sessionIdleTimeoutMs: number;
  /** Origin in links and signed URLs; null = `http://host:port` as bound. */
  publicUrl: string | null;
  logLevel: string;
  /** null = the embedded PostgreSQL under `dataDir`. */
  databaseUrl: string | null;
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
  return {
    host: value.HOST,
    port: value.PORT,
    dataDir: resolvePath(value.PALESTRA_DATA_DIR),
    apiKey: value.PALESTRA_API_KEY ?? null,
    demo: value.PALESTRA_DEMO,
    anonymous: value.PALESTRA_ANONYMOUS,
    fallbackDeployment: value.PALESTRA_FALLBACK_DEPLOYMENT ?? null,
    bundledEnvironments: value.PALESTRA_BUNDLED_ENVIRONMENTS,
    sessionIdleTimeoutMs: value.PALESTRA_SESSION_IDLE_S * 1000,
    publicUrl: value.PALESTRA_PUBLIC_URL ?? null,
    logLevel: value.PALESTRA_LOG_LEVEL,
    databaseUrl: value.DATABASE_URL ?? null,
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
