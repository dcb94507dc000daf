import type { Provider, Type } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { FailureClass, SessionState } from '@palestra/protocol';
import type { Caller, EnvironmentDirectory, SessionEngine } from '@palestra/session';
import type { Config } from '../../platform/config.ts';
import type { Sandboxes } from '../../environments/hosting/sandboxes/sandboxes.service.ts';
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

/** A session as the ledger knows it, also after its end. */
export interface StoredSession {
  state: SessionState;
  isLive: boolean;
  totalReward: number | null;
  /** Why the episode has no valid reward: its session failed, or one of its first 200 calls, without fault of the policy; null if it has one. */
  failure: { failureClass: FailureClass; code: string | null; detail: string } | null;
}

/** What the service offers to the plugin of a protocol. */
export interface ProtocolContext {
  engine: SessionEngine;
  directory: EnvironmentDirectory;
  /** Each request of a session goes first to the process that serves it. */
  routing: SessionRouting;
  sandboxes: Pick<Sandboxes, 'plainHosts' | 'wanted'>;
  sockets: Sockets;
  inFlight: InFlight;
  /** Null for a session that the caller's organisation does not have. */
  storedSession: (caller: Caller, sid: string) => Promise<StoredSession | null>;
  config: Pick<Config, 'mcp'>;
  authenticate: Authenticate;
  /** Throws `database_unavailable` or `storage_full` while the service cannot serve clients. */
  checkHealth: () => void;
  sendError: (error: unknown, request: FastifyRequest, reply: FastifyReply) => void;
  onBackgroundError: (error: unknown, sid: string) => void;
}
