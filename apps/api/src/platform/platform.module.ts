import { type DynamicModule, Global, Module } from '@nestjs/common';
import { DiscoveryModule, APP_FILTER, APP_PIPE } from '@nestjs/core';
import { OutboundPolicy } from '@palestra/outbound';
import { type BlobStore, UrlSigner } from '@palestra/blobs';
import { systemClock } from '@palestra/kit';
import type { Logger } from 'pino';
import { type Config, CONFIG } from './config.ts';
import { Database } from './database/database.ts';
import { UntrustedWork } from './untrusted-work/untrusted-work.ts';
import { Readiness } from './database/readiness.ts';
import { OpenApiController, OpenApiDocument } from './http/openapi.controller.ts';
import { InFlight } from './limits.ts';
import { Metrics } from './telemetry/metrics.ts';
import { ErrorFilter } from './http/error.filter.ts';
import { SchemaPipe } from './http/schema.pipe.ts';
import { RouteTable } from './http/route-table.ts';
import { UnauthenticatedRateLimit } from './http/unauthenticated-rate-limit.ts';
import { Sockets } from './http/sockets.ts';
import type { SecretKeys } from './secret-keys.ts';
import type { WorkerProcess } from './worker-process.ts';
import { BLOB_STORE, CLOCK, LOGGER, PUBLIC_ORIGIN, type PublicOrigin, SERVER_SECRET, URL_SIGNER, WORKER } from './tokens.ts';

export interface PlatformDependencies {
  config: Config;
  database: Database;
  blobs: BlobStore;
  urlSigner: UrlSigner;
  logger: Logger;
  origin: PublicOrigin;
  outbound: OutboundPolicy;
  /** See `SERVER_SECRET`. */
  secret: SecretKeys;
  /** See `WORKER`. */
  worker: WorkerProcess | null;
  /** Aborts when the process begins to stop. */
  draining: AbortSignal;
}

/** Providers that every other module may inject: configuration, database, object store, clock, logger, route table. */
@Global()
@Module({})
export class PlatformModule {
  static with(dependencies: PlatformDependencies): DynamicModule {
    const providers = [
      { provide: CONFIG, useValue: dependencies.config },
      { provide: Database, useValue: dependencies.database },
      { provide: BLOB_STORE, useValue: dependencies.blobs },
      { provide: URL_SIGNER, useValue: dependencies.urlSigner },
      { provide: SERVER_SECRET, useValue: dependencies.secret },
      { provide: LOGGER, useValue: dependencies.logger },
      { provide: WORKER, useValue: dependencies.worker },
      { provide: CLOCK, useValue: systemClock },
      { provide: PUBLIC_ORIGIN, useValue: dependencies.origin },
      { provide: OutboundPolicy, useValue: dependencies.outbound },
      { provide: UntrustedWork, useFactory: () => new UntrustedWork() },
      { provide: Readiness, useValue: new Readiness(dependencies.database, dependencies.draining) },
      RouteTable,
      UnauthenticatedRateLimit,
      Metrics,
      Sockets,
      { provide: InFlight, useValue: new InFlight(dependencies.config.limits) },
      OpenApiDocument,
      ErrorFilter,
    ];
    return {
      module: PlatformModule,
      imports: [DiscoveryModule],
      controllers: [OpenApiController],
      providers: [...providers, { provide: APP_FILTER, useExisting: ErrorFilter }, { provide: APP_PIPE, useClass: SchemaPipe }],
      exports: providers,
    };
  }
}
