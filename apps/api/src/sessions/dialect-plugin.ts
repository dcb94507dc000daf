import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EnvironmentDirectory, SessionEngine } from '@palestra/session';
import type { Sockets } from '../platform/http/sockets.ts';
import type { InFlight } from '../platform/limits.ts';
import type { Authenticate } from './authenticate.ts';
import type { SessionRouting } from './session-routing.ts';

/** What the routes and sockets of a dialect are made of. */
export interface DialectPluginOptions {
  engine: SessionEngine;
  directory: EnvironmentDirectory;
  /** A session's request belongs to the process that serves it. */
  routing: SessionRouting;
  sockets: Sockets;
  inFlight: InFlight;
  authenticate: Authenticate;
  sendError: (error: unknown, request: FastifyRequest, reply: FastifyReply) => void;
  onBackgroundError: (error: unknown, sid: string) => void;
}
