import type { FastifyInstance, FastifyRequest, FastifyReply } from 'fastify';
import type pg from 'pg';
import { newUuid, systemClock } from '@palestra/kit';
import { OrsDialect } from '@palestra/ors/server';
import { type EnvironmentDirectory, SessionEngine, type SessionObserver } from '@palestra/session';
import type { McpTimings } from '../platform/config.ts';
import type { Sockets } from '../platform/http/sockets.ts';
import type { InFlight } from '../platform/limits.ts';
import type { SecretKeys } from '../platform/secret-keys.ts';
import type { Authenticate } from './authenticate.ts';
import { SqlAdmissionStore } from './slots/admission.sql.ts';
import { SqlCallLedger } from './ledger/call-ledger.sql.ts';
import type { DialectPluginOptions } from './dialect-plugin.ts';
import { Forwarder } from './forwarder.ts';
import { mcpPlugin } from './mcp/mcp.routes.ts';
import { openEnvPlugin } from './openenv/openenv.routes.ts';
import { orsPlugin } from './ors/ors.routes.ts';
import { LEASE_MS, REPLICA_PATH, SqlReplicaLeases } from './replica-leases.sql.ts';
import { AesSecretBox } from './secret-box.ts';
import { SessionRouting } from './session-routing.ts';
import { SqlSessionStore } from './session-store.sql.ts';

export interface SessionPlaneOptions {
  /** See `openSessionPool`; ended by `stop`. */
  pool: pg.Pool;
  directory: EnvironmentDirectory;
  authenticate: Authenticate;
  sockets: Sockets;
  inFlight: InFlight;
  sendError: (error: unknown, request: FastifyRequest, reply: FastifyReply) => void;
  /** Seal the secrets of sessions; the same on every replica. */
  secrets: SecretKeys;
  observer: SessionObserver;
  /** Throws what `/health` answers while the service is of no use to clients. */
  checkHealth: () => void;
  /** What `/version` answers. */
  version: string;
  /** Clients that may wait for slots of one environment, and how long, milliseconds. */
  queue: { limit: number; patienceMs: number };
  mcp: McpTimings;
  /** Sessions that an organisation may have open, whatever quota its owners set; null = as many as come. */
  orgQuota: number | null;
  /** How long `drain` waits for sessions that end with this process. */
  drainMs: number;
  onBackgroundError: (error: unknown, sid: string) => void;
}

/** Running calls get this long at shutdown, also where nobody could go on with them. */
const CALL_GRACE_MS = 10_000;
const DRAIN_POLL_MS = 200;

/** The session engine with its stores, and the dialects that speak to it. */
export class SessionPlane {
  readonly engine: SessionEngine;
  readonly replicaId = newUuid();
  /** Opens what the stores keep sealed. */
  readonly box: AesSecretBox;
  readonly leases: SqlReplicaLeases;
  readonly routing: SessionRouting;
  readonly #ledger: SqlCallLedger;
  readonly #forwarder: Forwarder;
  readonly #options: SessionPlaneOptions;

  constructor(options: SessionPlaneOptions) {
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
      this.engine.noteCallBroken(taskId).catch((error: unknown) => onBackgroundError(error, ''));
    });
    this.routing = new SessionRouting(this.engine, this.leases, this.#forwarder);
  }

  async register(server: FastifyInstance): Promise<void> {
    const { directory, version, checkHealth, authenticate, sendError, sockets, inFlight, onBackgroundError, mcp } = this.#options;
    const { engine, routing } = this;
    const dialect = new OrsDialect(engine, directory, version, checkHealth);
    await server.register(orsPlugin, { dialect, routing, authenticate, sendError });
    const options: DialectPluginOptions = { engine, directory, routing, sockets, inFlight, authenticate, sendError, onBackgroundError };
    await server.register(openEnvPlugin, options);
    await server.register(mcpPlugin, { ...options, timings: mcp });
    // For siblings: see REPLICA_PATH.
    server.get<{ Querystring: { ask?: string } }>(REPLICA_PATH, { config: { unlisted: true } }, async ({ query }) => {
      if (query.ask !== 'alive') await this.#ledger.drain();
      return { id: this.replicaId };
    });
  }

  async start(): Promise<void> {
    await this.leases.start();
    this.engine.start();
  }

  /** The address at which siblings reach this process. */
  async announce(address: string): Promise<void> {
    await this.leases.announce(address);
  }

  /**
   * Before the end, while requests are still served: opens no new sessions, lets calls end and, where siblings could not go on with
   * them, sessions; hands the rest over.
   */
  async drain(): Promise<void> {
    this.engine.refuseNew();
    await this.leases.drain();
    const deadline = Date.now() + ((await this.leases.hasSiblings()) ? this.#options.drainMs : 0);
    while (this.engine.bound() > 0 && Date.now() < deadline) await systemClock.sleep(DRAIN_POLL_MS);
    await this.engine.stop(Math.max(CALL_GRACE_MS, deadline - Date.now()));
    await this.leases.stop();
  }

  async stop(): Promise<void> {
    await this.#forwarder.close();
    await this.#options.pool.end();
  }
}
