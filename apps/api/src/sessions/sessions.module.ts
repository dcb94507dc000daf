import { type BeforeApplicationShutdown, Inject, Injectable, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { EnvironmentDirectory } from '@palestra/session';
import { ENVIRONMENT_DIRECTORY } from '../environments/directory.token.ts';
import { EnvironmentsModule } from '../environments/environments.module.ts';
import { Sandboxes } from '../environments/hosting/sandboxes/sandboxes.service.ts';
import { type Config, CONFIG } from '../platform/config.ts';
import { Database } from '../platform/database/database.ts';
import { Readiness } from '../platform/database/readiness.ts';
import { ErrorFilter } from '../platform/http/error.filter.ts';
import { Sockets } from '../platform/http/sockets.ts';
import { InFlight } from '../platform/limits.ts';
import type { SecretKeys } from '../platform/secret-keys.ts';
import { LOGGER, SERVER_SECRET } from '../platform/tokens.ts';
import { SessionEvents } from './events/session-events.service.ts';
import { SessionAuthenticator } from './http/authenticate.ts';
import { SecretRotationController } from './management/secret-rotation.controller.ts';
import { SecretRotationService } from './management/secret-rotation.service.ts';
import { SessionController } from './management/session.controller.ts';
import { SessionService } from './management/session.service.ts';
import { ObserverList } from './observers/observer-list.ts';
import { openSessionPool } from './persistence/session-pool.ts';
import { protocols } from './protocols.ts';
import { type HttpContext, SessionServer } from './server/session-server.ts';
import { SlotController } from './slots/slot.controller.ts';
import { SlotService } from './slots/slot.service.ts';

const sessionServer = {
  provide: SessionServer,
  inject: [Database, ENVIRONMENT_DIRECTORY, CONFIG, LOGGER, SERVER_SECRET, ObserverList],
  useFactory: (
    database: Database,
    directory: EnvironmentDirectory,
    config: Config,
    logger: Logger,
    secrets: SecretKeys,
    observer: ObserverList,
  ) =>
    new SessionServer({
      pool: openSessionPool(database.connectionString),
      directory,
      secrets,
      observer,
      drainMs: config.drainMs,
      queue: config.queue,
      orgQuota: config.limits.sessions.org,
      onBackgroundError: (error, sid) => logger.warn({ err: error, sid }, 'a session failed in the background'),
    }),
};

/** What the protocols get of the HTTP server. */
@Injectable()
class SessionHttp {
  readonly context: HttpContext;

  constructor(
    @Inject(CONFIG) config: Config,
    authenticator: SessionAuthenticator,
    @Inject(ErrorFilter) errors: ErrorFilter,
    @Inject(Readiness) readiness: Readiness,
    @Inject(Sockets) sockets: Sockets,
    @Inject(InFlight) inFlight: InFlight,
    @Inject(Sandboxes) sandboxes: Sandboxes,
  ) {
    this.context = {
      config,
      sockets,
      inFlight,
      sandboxes,
      authenticate: (request) => authenticator.authenticate(request),
      checkHealth: () => void readiness.checkForClients(),
      sendError: (error, request, reply) => errors.send(error, request, reply),
    };
  }
}

/** Mounts the protocols, and starts and ends the session server with the service. */
@Injectable()
class SessionServerLifecycle implements OnModuleInit, BeforeApplicationShutdown, OnApplicationShutdown {
  constructor(
    @Inject(SessionServer) private readonly server: SessionServer,
    private readonly http: SessionHttp,
    private readonly adapterHost: HttpAdapterHost,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.server.mount(this.adapterHost.httpAdapter.getInstance<FastifyInstance>(), protocols, this.http.context);
    await this.server.start();
  }

  /** The service still answers requests during the drain. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.server.drain();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.server.stop();
  }
}

@Module({
  imports: [EnvironmentsModule],
  controllers: [SecretRotationController, SessionController, SlotController, ...protocols.flatMap(({ controllers = [] }) => controllers)],
  providers: [
    SecretRotationService,
    SessionService,
    SessionEvents,
    SlotService,
    ObserverList,
    sessionServer,
    SessionAuthenticator,
    SessionHttp,
    SessionServerLifecycle,
    ...protocols.flatMap(({ providers = [] }) => providers),
  ],
  exports: [SessionServer, SessionService, ObserverList],
})
export class SessionsModule {}
