import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Authenticator } from './accounts/authenticator.ts';
import { AppModule } from './app.module.ts';
import { healthDocumentation } from './health/health.routes.ts';
import { allowOrigins } from './platform/http/allowed-origins.ts';
import { serveDashboard } from './platform/http/dashboard-pages.ts';
import { serveDocs } from './platform/http/docs-pages.ts';
import { ClientAddresses } from './platform/http/client-address.ts';
import { watchConnections } from './platform/http/connections.ts';
import { ErrorFilter } from './platform/http/error.filter.ts';
import { createFastifyAdapter, prepareFastify } from './platform/http/fastify.ts';
import { buildOpenApi } from './platform/http/openapi.ts';
import { measureRequests } from './platform/telemetry/metrics.hooks.ts';
import { InFlight } from './platform/limits.ts';
import { limitUploads } from './platform/http/uploads.ts';
import { Metrics } from './platform/telemetry/metrics.ts';
import { OpenApiDocument } from './platform/http/openapi.controller.ts';
import type { PlatformDependencies } from './platform/platform.module.ts';
import { SessionTraces } from './sessions/observers/traces.ts';
import { protocols } from './sessions/protocols.ts';
import { RouteTable } from './platform/http/route-table.ts';
import { Sockets } from './platform/http/sockets.ts';

/** Creates the service, ready to `listen`. Closing it does not close the dependencies. */
export async function createApp(dependencies: PlatformDependencies): Promise<NestFastifyApplication> {
  const refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply) => app.get(ErrorFilter).send(error, request, reply);
  const app = await NestFactory.create<NestFastifyApplication>(
    AppModule.with(dependencies),
    createFastifyAdapter(refuse, dependencies.config.trustedProxies),
    {
      logger: false,
      bodyParser: false,
      abortOnError: false,
      forceCloseConnections: true,
    },
  );
  const fastify = app.getHttpAdapter().getInstance();
  const authenticator = app.get(Authenticator);
  const authenticate = (request: FastifyRequest) => authenticator.authenticate(request);
  prepareFastify(fastify, { routes: app.get(RouteTable), origin: dependencies.origin, authenticate });
  allowOrigins(fastify, dependencies.config.allowedOrigins);
  measureRequests(fastify, app.get(Metrics));
  app.get(SessionTraces).readParents(fastify);
  fastify.setErrorHandler(refuse);
  await serveDashboard(fastify);
  await serveDocs(fastify);
  const inFlight = app.get(InFlight);
  limitUploads(fastify, inFlight, authenticate);
  watchConnections(fastify.server, new ClientAddresses(dependencies.config.trustedProxies));
  const sockets = app.get(Sockets);
  sockets.listen(fastify.server, inFlight);
  fastify.addHook('preClose', async () => sockets.close());
  await app.init();
  app.get(OpenApiDocument).json = buildOpenApi(app, [
    ...protocols.flatMap(({ documentation = [] }) => documentation),
    ...healthDocumentation,
  ]);
  return app;
}
