import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import { newUuid, systemClock } from '@palestra/kit';
import { type EnvironmentDirectory, SessionEngine, type SessionObserver } from '@palestra/session';
import type { SecretKeys } from '../../platform/secret-keys.ts';
import { Forwarder } from '../http/forwarder.ts';
import type { Protocol, ProtocolContext } from '../http/protocol.ts';
import { SessionRouting } from '../http/session-routing.ts';
import { SqlCallLedger } from '../ledger/call-ledger.sql.ts';
import { LEASE_MS, REPLICA_PATH, SqlReplicaLeases } from '../persistence/replica-leases.sql.ts';
import { AesSecretBox } from '../../platform/secret-box.ts';
import { SqlSessionStore } from '../persistence/session-store.sql.ts';
import { SqlAdmissionStore } from '../slots/admission.sql.ts';
import { readStoredSession } from './stored-session.ts';

export interface SessionServerOptions {
  /** See `openSessionPool`. `stop` ends it. */
  pool: pg.Pool;
  directory: EnvironmentDirectory;
  /** Seal the secrets of sessions. All replicas have the same keys. */
  secrets: SecretKeys;
  observer: SessionObserver;
  /** How many clients may wait for slots of one environment, and for how many milliseconds. */
  queue: { limit: number; patienceMs: number };
  /** How many sessions an organisation may have open, in addition to the quota of its owners. Null: no limit. */
  orgQuota: number | null;
  /** How long `drain` waits for sessions that end with this process. */
  drainMs: number;
  onBackgroundError: (error: unknown, sid: string) => void;
}

/** What the HTTP server adds to the context of the protocols. */
export type HttpContext = Omit<ProtocolContext, 'engine' | 'directory' | 'routing' | 'storedSession' | 'onBackgroundError'>;

/** How long running calls get at shutdown, also where no other process can continue them. */
const CALL_GRACE_MS = 10_000;
const DRAIN_POLL_MS = 200;

/** The session engine on PostgreSQL, and the protocols in which clients use it. */
export class SessionServer {
  readonly engine: SessionEngine;
  readonly replicaId = newUuid();
  /** Opens the sealed secrets of stored sessions. */
  readonly box: AesSecretBox;
  readonly leases: SqlReplicaLeases;
  readonly routing: SessionRouting;
  readonly #ledger: SqlCallLedger;
  readonly #forwarder: Forwarder;
  readonly #options: SessionServerOptions;

  constructor(options: SessionServerOptions) {
    const { pool, directory, secrets, observer, onBackgroundError } = options;
    const { replicaId } = this;
    this.#options = options;
    this.box = new AesSecretBox(secrets);
    this.#ledger = new SqlCallLedger(pool, (error) => onBackgroundError(error, 'ended calls'));
    this.leases = new SqlReplicaLeases({ pool, replicaId, confirm: (commit) => this.#ledger.confirm(commit) });
    this.engine = new SessionEngine({
      store: new SqlSessionStore(pool, LEASE_MS, this.box),
      ledger: this.#ledger,
      leases: this.leases,
      directory,
      clock: systemClock,
      replicaId,
      box: this.box,
      observer,
      admission: new SqlAdmissionStore(pool, LEASE_MS, options.orgQuota),
      queue: options.queue,
      onBackgroundError,
    });
    this.#forwarder = new Forwarder(replicaId, (taskId) => {
      this.engine.markCallUndelivered(taskId).catch((error: unknown) => onBackgroundError(error, ''));
    });
    this.routing = new SessionRouting(this.engine, this.leases, this.#forwarder);
  }

  /** Adds the routes and sockets of the protocols, and the route on which replicas ask for this process. */
  async mount(server: FastifyInstance, protocols: readonly Protocol[], http: HttpContext): Promise<void> {
    const { engine, routing } = this;
    const { directory, onBackgroundError } = this.#options;
    const storedSession: ProtocolContext['storedSession'] = async (caller, sid) => {
      await this.settled();
      return readStoredSession(this.#options.pool, caller.orgId, sid);
    };
    const context: ProtocolContext = { ...http, engine, directory, routing, storedSession, onBackgroundError };
    for (const { mount } of protocols) {
      if (mount !== undefined) await server.register(mount, context);
    }
    server.get<{ Querystring: { ask?: string } }>(REPLICA_PATH, { config: { unlisted: true } }, async ({ query }) => {
      if (query.ask !== 'alive') await this.#ledger.drain();
      return { id: this.replicaId };
    });
  }

  /** Resolves when the ledger has every outcome that a client of this process knows. */
  settled(): Promise<void> {
    return this.#ledger.drain();
  }

  async start(): Promise<void> {
    await this.leases.start();
    this.engine.start();
  }

  /** Stores the address at which other replicas reach this process. */
  async announce(address: string): Promise<void> {
    await this.leases.announce(address);
  }

  /**
   * Prepares the end of the process while it still serves requests. Opens no new sessions, waits for running calls and for sessions that
   * no other replica can continue, and hands the other sessions over.
   */
  async drain(): Promise<void> {
    this.engine.refuseNew();
    await this.leases.drain();
    const deadline = Date.now() + ((await this.leases.hasSiblings()) ? this.#options.drainMs : 0);
    while (this.engine.countUnmovable() > 0 && Date.now() < deadline) await systemClock.sleep(DRAIN_POLL_MS);
    await this.engine.stop(Math.max(CALL_GRACE_MS, deadline - Date.now()));
    await this.leases.stop();
  }

  async stop(): Promise<void> {
    await this.#forwarder.close();
    await this.#options.pool.end();
  }
}
