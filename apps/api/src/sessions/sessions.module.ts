import { Inject, Injectable, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { EnvironmentDirectory } from '@palestra/session';
import { Authenticator } from '../accounts/authenticator.ts';
import { ENVIRONMENT_DIRECTORY } from '../environments/directory.token.ts';
import { EnvironmentsModule } from '../environments/environments.module.ts';
import { type Config, CONFIG } from '../platform/config.ts';
import { Database } from '../platform/database.ts';
import { ErrorFilter } from '../platform/error.filter.ts';
import { LOGGER } from '../platform/tokens.ts';
import { SessionPlane } from './session-plane.ts';

/** The reference whose behaviour `/version` promises. */
const ORS_VERSION = '0.1.167';

/** Starts and ends the session plane with the service. */
@Injectable()
class SessionPlaneLifecycle implements OnModuleInit, OnApplicationShutdown {
  readonly #plane: SessionPlane;

  constructor(
    database: Database,
    authenticator: Authenticator,
    errors: ErrorFilter,
    private readonly adapterHost: HttpAdapterHost,
    @Inject(ENVIRONMENT_DIRECTORY) directory: EnvironmentDirectory,
    @Inject(CONFIG) config: Config,
    @Inject(LOGGER) logger: Logger,
  ) {
    this.#plane = new SessionPlane({
      pool: database.pool,
      directory,
      version: ORS_VERSION,
      idleTimeoutMs: config.sessionIdleTimeoutMs,
      authenticate: async (request) => {
        const caller = await authenticator.authenticate(request);
        if (caller !== null) authenticator.requireScope(caller, 'sessions');
        return caller;
      },
      sendError: (error, request, reply) => errors.send(error, request, reply),
      onBackgroundError: (error, sid) => logger.warn({ err: error, sid }, 'a session failed in the background'),
    });
  }

  async onModuleInit(): Promise<void> {
    await this.#plane.register(this.adapterHost.httpAdapter.getInstance<FastifyInstance>());
    await this.#plane.start();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#plane.stop();
  }
}

@Module({ imports: [EnvironmentsModule], providers: [SessionPlaneLifecycle] })
export class SessionsModule {}
