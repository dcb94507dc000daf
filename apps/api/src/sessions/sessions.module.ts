import type { IncomingHttpHeaders } from 'node:http';
import { type BeforeApplicationShutdown, Inject, Injectable, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { EnvironmentDirectory } from '@palestra/session';
import { Authenticator } from '../accounts/authenticator.ts';
import { ENVIRONMENT_DIRECTORY } from '../environments/directory.token.ts';
import { EnvironmentsModule } from '../environments/environments.module.ts';
import { type Config, CONFIG } from '../platform/config.ts';
import { Database } from '../platform/database/database.ts';
import { Readiness } from '../platform/database/readiness.ts';
import { keyOf } from '../platform/http/credentials.ts';
import { ErrorFilter } from '../platform/http/error.filter.ts';
import { InFlight } from '../platform/limits.ts';
import { StrangerRates } from '../platform/http/stranger-rates.ts';
import { Sockets } from '../platform/http/sockets.ts';
import type { SecretKeys } from '../platform/secret-keys.ts';
import { LOGGER, SERVER_SECRET } from '../platform/tokens.ts';
import { ObserverList } from './observers/observer-list.ts';
import { SessionEvents } from './events/session-events.service.ts';
import { SecretRotationController } from './secret-rotation.controller.ts';
import { SecretRotationService } from './secret-rotation.service.ts';
import { SessionController } from './session.controller.ts';
import { SessionPlane } from './session-plane.ts';
import { openSessionPool } from './session-pool.ts';
import { SessionService } from './session.service.ts';
import { SessionSocket } from './socket/session.socket.ts';
import { SlotController } from './slots/slot.controller.ts';
import { SlotService } from './slots/slot.service.ts';
import { TextController } from './text/text.controller.ts';
import { TextService } from './text/text.service.ts';
import { TextSocket } from './text/text.socket.ts';

/** The reference whose behaviour `/version` promises. */
const ORS_VERSION = '0.1.167';

/** Everything that a page's script does not fetch itself: documents, frames, images and the like (Fetch Metadata, sec-fetch-dest). */
const isNavigation = ({ 'sec-fetch-dest': destination }: IncomingHttpHeaders) =>
  destination !== undefined && destination !== 'empty' && destination !== 'websocket';

const sessionPlane = {
  provide: SessionPlane,
  inject: [
    Database,
    Authenticator,
    ErrorFilter,
    ENVIRONMENT_DIRECTORY,
    CONFIG,
    LOGGER,
    SERVER_SECRET,
    ObserverList,
    Sockets,
    InFlight,
    Readiness,
    StrangerRates,
  ],
  useFactory: (
    database: Database,
    authenticator: Authenticator,
    errors: ErrorFilter,
    directory: EnvironmentDirectory,
    config: Config,
    logger: Logger,
    secrets: SecretKeys,
    observer: ObserverList,
    sockets: Sockets,
    inFlight: InFlight,
    readiness: Readiness,
    rates: StrangerRates,
  ) =>
    new SessionPlane({
      pool: openSessionPool(database.connectionString),
      directory,
      secrets,
      observer,
      sockets,
      inFlight,
      checkHealth: () => readiness.checkForClients(),
      version: ORS_VERSION,
      drainMs: config.drainMs,
      queue: config.queue,
      mcp: config.mcp,
      orgQuota: config.limits.sessions.org,
      authenticate: async (request) => {
        // A link or a frame of another site must not act here as the person whose browser follows it.
        const isForeign = isNavigation(request.headers) && keyOf(request.headers) === null;
        const caller = isForeign ? null : await authenticator.authenticate(request);
        if (caller === null && request.raw !== undefined) await rates.unauthenticated(request.raw);
        if (caller !== null) authenticator.requireScope(caller, 'sessions');
        return caller;
      },
      sendError: (error, request, reply) => errors.send(error, request, reply),
      onBackgroundError: (error, sid) => logger.warn({ err: error, sid }, 'a session failed in the background'),
    }),
};

/** Starts and ends the session plane with the service. */
@Injectable()
class SessionPlaneLifecycle implements OnModuleInit, BeforeApplicationShutdown, OnApplicationShutdown {
  constructor(
    @Inject(SessionPlane) private readonly plane: SessionPlane,
    private readonly adapterHost: HttpAdapterHost,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.plane.register(this.adapterHost.httpAdapter.getInstance<FastifyInstance>());
    await this.plane.start();
  }

  /** Requests are still served meanwhile. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.plane.drain();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.plane.stop();
  }
}

@Module({
  imports: [EnvironmentsModule],
  controllers: [SecretRotationController, SessionController, SlotController, TextController],
  providers: [
    SecretRotationService,
    SessionService,
    SessionEvents,
    SessionSocket,
    SlotService,
    TextService,
    TextSocket,
    ObserverList,
    sessionPlane,
    SessionPlaneLifecycle,
  ],
  exports: [SessionPlane, SessionService, ObserverList],
})
export class SessionsModule {}
