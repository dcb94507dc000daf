import type { Provider, Type } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { EnvironmentDirectory, SessionEngine } from '@palestra/session';
import type { Config } from '../../platform/config.ts';
import type { DocumentedRoute } from '../../platform/http/openapi.ts';
import type { Sockets } from '../../platform/http/sockets.ts';
import type { InFlight } from '../../platform/limits.ts';
import type { Authenticate } from './authenticate.ts';
import type { SessionRouting } from './session-routing.ts';

/** A protocol in which clients play sessions. `protocols.ts` lists all of them. */
export interface Protocol {
  /** A Fastify plugin with the protocol's routes and sockets. Protocols whose routes are Nest controllers have none. */
  mount?: (scope: FastifyInstance, context: ProtocolContext) => Promise<void>;
  /** The routes of `mount` in the OpenAPI document. */
  documentation?: readonly DocumentedRoute[];
  controllers?: Type[];
  providers?: Provider[];
}

/** What the service offers to the plugin of a protocol. */
export interface ProtocolContext {
  engine: SessionEngine;
  directory: EnvironmentDirectory;
  /** Each request of a session goes first to the process that serves it. */
  routing: SessionRouting;
  sockets: Sockets;
  inFlight: InFlight;
  config: Pick<Config, 'mcp'>;
  authenticate: Authenticate;
  /** Throws `database_unavailable` or `storage_full` while the service cannot serve clients. */
  checkHealth: () => void;
  sendError: (error: unknown, request: FastifyRequest, reply: FastifyReply) => void;
  onBackgroundError: (error: unknown, sid: string) => void;
}
