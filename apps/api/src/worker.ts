import '@palestra/kit/node-version';
import 'reflect-metadata';
import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { NestFactory } from '@nestjs/core';
import { PalestraError } from '@palestra/protocol';
import type { Registry } from 'prom-client';
import { type Config, ConfigError, readConfig } from './platform/config.ts';
import { Readiness } from './platform/database/readiness.ts';
import { limitHeapGrowth } from './platform/gc-tuning.ts';
import { randomSecret } from './platform/local-secrets.ts';
import { SecretKeys } from './platform/secret-keys.ts';
import { createLogger } from './platform/telemetry/logger.ts';
import { Metrics } from './platform/telemetry/metrics.ts';
import { createOutboundPolicy } from './platform/outbound.ts';
import { MigrationError } from './platform/database/migrations.ts';
import { ShutdownList } from './platform/shutdown.ts';
import { openBlobStore } from './platform/storage.ts';
import { DatabaseUnreachableError, migrate, openDatabase } from './server.ts';
import { WorkerModule } from './worker.module.ts';

export { exitOnSecondInterrupt } from './platform/shutdown.ts';

/** Only the health routes of a worker read the result. */
const PROBE_MS = 5_000;

/** The only entry of this application for another one: apps/worker runs its jobs (docs/adr/0015). */
export interface RunningWorker {
  /** Origin of `/health` and `/metrics`; null without `PALESTRA_WORKER_PORT`. */
  url: string | null;
  registry: Registry;
  close(): Promise<void>;
}

export function readWorkerConfig(env: NodeJS.ProcessEnv): Config {
  return readConfig(env, (file) => path.resolve(env.INIT_CWD ?? process.cwd(), file));
}

/** The text for the terminal: the message of an expected error, the stack of any other. */
export function workerFault(error: unknown): string {
  const { message, stack } = error as Error;
  const expected = error instanceof ConfigError || error instanceof DatabaseUnreachableError || error instanceof MigrationError;
  return expected || !stack ? message : stack;
}

/** Runs jobs until it is closed. Throws `ConfigError` when it does not share the database and objects of an API. */
export async function startWorker(config: Config): Promise<RunningWorker> {
  limitHeapGrowth();
  const databaseUrl = sharedDatabase(config);
  const shutdown = new ShutdownList();
  const logger = createLogger(config.logLevel);
  const draining = new AbortController();
  const close = () => {
    draining.abort();
    return shutdown.run((name, error) => logger.warn({ err: error }, `${name} did not stop cleanly`));
  };
  try {
    await migrate(databaseUrl, config.databaseMigrationUrl);
    const database = await openDatabase(databaseUrl, config, shutdown, null, PROBE_MS);
    const origin = { url: config.publicUrl ?? '' };
    // A worker signs no URLs: any secret works.
    const secret = new SecretKeys(config.secretKey ?? randomSecret(), config.previousSecretKeys);
    const { blobs, urlSigner } = await openBlobStore(config, origin, secret, { alone: false });
    const dependencies = {
      config: { ...config, jobs: 'here' as const },
      worker: null,
      database,
      blobs,
      urlSigner,
      logger,
      origin,
      outbound: createOutboundPolicy(config, databaseUrl),
      secret,
      draining: draining.signal,
    };
    const app = await NestFactory.createApplicationContext(WorkerModule.with(dependencies), { logger: false, abortOnError: false });
    shutdown.push('jobs', 30_000, () => app.close());
    const { registry } = app.get(Metrics);
    if (config.workerPort === null) return { url: null, registry, close };
    const server = await listen(new Readiness(database, draining.signal), registry, config);
    shutdown.push('health', 2_000, async () => void server.close());
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, registry, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Without the API's database and object store a worker would write transcripts that no API can read. */
function sharedDatabase(config: Config): string {
  if (config.databaseUrl === null)
    throw new ConfigError('DATABASE_URL: set it to the database of the API; a worker does not start a database');
  if (config.s3 === null && !existsSync(path.join(config.dataDir, 'blobs'))) {
    throw new ConfigError(`PALESTRA_DATA_DIR: ${config.dataDir} is not the data directory of an API: set it to one, or set S3_BUCKET`);
  }
  return config.databaseUrl;
}

async function listen(readiness: Readiness, registry: Registry, { host, workerPort }: Config): Promise<Server> {
  const server = createServer(async (request, response) => {
    const respond = (status: number, type: string, text: string) => response.writeHead(status, { 'content-type': type }).end(text);
    try {
      if (request.url === '/metrics') respond(200, registry.contentType, await registry.metrics());
      else if (request.url === '/health/live') respond(200, 'application/json', JSON.stringify({ status: 'live' }));
      else if (request.url === '/health/ready') respond(200, 'application/json', JSON.stringify(readiness.check()));
      else if (request.url === '/health') respond(200, 'application/json', JSON.stringify(readiness.checkForClients()));
      else respond(404, 'text/plain', 'A worker has /health, /health/live, /health/ready and /metrics.\n');
    } catch (error) {
      const known = error instanceof PalestraError ? error : new PalestraError('internal_error');
      respond(known.status, 'application/json', JSON.stringify(known.toBody()));
    }
  });
  server.listen(workerPort!, host);
  await Promise.race([once(server, 'listening'), once(server, 'error').then(([error]) => Promise.reject(error as Error))]);
  return server;
}
