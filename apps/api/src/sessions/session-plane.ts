import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type pg from 'pg';
import { newUuid, systemClock } from '@palestra/kit';
import { OrsDialect } from '@palestra/dialects';
import { type EnvironmentDirectory, SessionEngine } from '@palestra/session';
import type { Authenticate } from './authenticate.ts';
import { SqlCallLedger } from './call-ledger.sql.ts';
import { orsPlugin } from './ors.routes.ts';
import { SqlReplicaLeases } from './replica-leases.sql.ts';
import { SqlSessionStore } from './session-store.sql.ts';

export interface SessionPlaneOptions {
  pool: pg.Pool;
  directory: EnvironmentDirectory;
  authenticate: Authenticate;
  sendError: (error: unknown, request: FastifyRequest, reply: FastifyReply) => void;
  /** Of reservations that name no environment yet. */
  idleTimeoutMs: number;
  /** What `/version` answers. */
  version: string;
  onBackgroundError: (error: unknown, sid: string) => void;
}

/** Running calls get this long at shutdown. */
const DRAIN_MS = 10_000;

/** The session engine with its stores, and the dialects that speak to it. */
export class SessionPlane {
  readonly engine: SessionEngine;
  readonly #leases: SqlReplicaLeases;
  readonly #options: SessionPlaneOptions;

  constructor(options: SessionPlaneOptions) {
    const replicaId = newUuid();
    this.#options = options;
    this.#leases = new SqlReplicaLeases(options.pool, replicaId);
    this.engine = new SessionEngine({
      store: new SqlSessionStore(options.pool),
      ledger: new SqlCallLedger(options.pool),
      leases: this.#leases,
      directory: options.directory,
      clock: systemClock,
      replicaId,
      idleTimeoutMs: options.idleTimeoutMs,
      onBackgroundError: options.onBackgroundError,
    });
  }

  async register(server: FastifyInstance): Promise<void> {
    const { directory, version, authenticate, sendError } = this.#options;
    await server.register(orsPlugin, { dialect: new OrsDialect(this.engine, directory, version), authenticate, sendError });
  }

  async start(): Promise<void> {
    await this.#leases.start();
    this.engine.start();
  }

  async stop(): Promise<void> {
    await this.engine.stop(DRAIN_MS);
    await this.#leases.stop();
  }
}
