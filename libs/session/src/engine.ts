import { type Clock, newUuid } from '@palestra/kit';
import {
  type GroupCandidate,
  type JsonObject,
  type Message,
  type MessageBlock,
  PalestraError,
  stringifyJson,
  type ToolsAnswer,
} from '@palestra/protocol';
import { abortable } from './abortable.ts';
import type { BackendCreate, SecretMap } from './backend.port.ts';
import type { CallLedger, ReplicaLeases } from './call-ledger.port.ts';
import { CallRunner, type OpenCall } from './call-runner.ts';
import type { Caller, EnvironmentDirectory, HostedEnvironment } from './directory.port.ts';
import { deathError, type LiveSession } from './live-session.ts';
import { SessionReaper } from './reaper.ts';
import { SessionRegistry } from './session-registry.ts';
import type { SessionRecord, SessionStore } from './session-store.port.ts';
import { SetupGate } from './setup-gate.ts';
import { isDead } from './state.ts';

export interface SessionEngineOptions {
  store: SessionStore;
  ledger: CallLedger;
  leases: ReplicaLeases;
  directory: EnvironmentDirectory;
  clock: Clock;
  /** Id of this API process, under which its lease is renewed. */
  replicaId: string;
  /** Idle timeout of reservations that name no environment. */
  idleTimeoutMs: number;
  /** Told of failures that no client waits for (teardown, a late write). */
  onBackgroundError: (error: unknown, sid: string) => void;
}

export interface Reservation {
  /** The SID that an earlier answer gave; the same one is given again. */
  sid: string | null;
  /** null: the request named no deployment; `/create` decides. */
  hosted: HostedEnvironment | null;
  secrets: SecretMap | null;
}

export interface CreateRequest {
  sid: string;
  /** Asked only when the reservation did not pin an environment. */
  resolve: () => Promise<HostedEnvironment>;
  /** The variant to open, of the environment that the session is pinned to; null = default. Throws `unknown_variant`. */
  variant: (hosted: HostedEnvironment) => Promise<string | null>;
  task: BackendCreate['task'];
  toolsetName: string | null;
  secrets: SecretMap | null;
}

const TEARDOWN_DEADLINE_MS = 60_000;

/**
 * Sessions and their tool calls, whatever dialect the client speaks and whatever kind of backend runs the environment. Knows
 * neither the web framework nor the database. Every method names the caller; another tenant's session does not exist for him.
 */
export class SessionEngine {
  readonly #registry: SessionRegistry;
  readonly #setup: SetupGate;
  readonly #calls: CallRunner;
  readonly #reaper: SessionReaper;
  readonly #options: SessionEngineOptions;
  /** SIDs that are being claimed right now, so that of two concurrent claims one wins without asking the store. */
  readonly #claiming = new Set<string>();

  constructor(options: SessionEngineOptions) {
    this.#options = options;
    this.#registry = new SessionRegistry(options.store, options.directory, options.clock);
    this.#setup = new SetupGate(this.#registry, options.onBackgroundError);
    this.#calls = new CallRunner(this.#registry, this.#setup, options);
    this.#reaper = new SessionReaper(this.#registry, options, (live) => this.#teardown(live));
  }

  /** Starts the timers: heartbeats to the store, expiry. */
  start(): void {
    this.#reaper.start();
  }

  /** Waits for running calls and late writes; `graceMs` at most for the calls. */
  async stop(graceMs: number): Promise<void> {
    await this.#reaper.stop();
    await this.#calls.drain(graceMs);
    await Promise.all([...this.#registry.all()].map((live) => live.writes));
  }

  /** Gives out a SID. Idempotent: the SID of an earlier answer comes back as it is. */
  async reserve(caller: Caller, reservation: Reservation): Promise<string> {
    if (reservation.sid !== null) {
      const known = await this.#registry.find(reservation.sid, caller);
      if (known !== null) {
        if (isDead(known.record.state)) throw deathError(known.record, this.#options.clock.now());
        return known.record.sid;
      }
    }
    const sid = reservation.sid ?? newUuid();
    const live = await this.#registry.insert(this.#newRecord(sid, caller, reservation.hosted));
    if (live === null) {
      // Taken in the meantime: by the same client's other attempt, or it is somebody else's.
      if ((await this.#registry.find(sid, caller)) === null) throw new PalestraError('session_not_found');
      return sid;
    }
    live.hosted = reservation.hosted;
    live.secrets = reservation.secrets;
    return sid;
  }

  /** Opens the episode. Of concurrent creates of one SID exactly one wins; a refused one leaves the SID unbound. */
  async create(caller: Caller, request: CreateRequest): Promise<void> {
    if (this.#claiming.has(request.sid)) throw new PalestraError('session_exists');
    this.#claiming.add(request.sid);
    try {
      await this.#create(caller, request);
    } finally {
      this.#claiming.delete(request.sid);
    }
  }

  async #create(caller: Caller, request: CreateRequest): Promise<void> {
    const { sid } = request;
    const known = await this.#registry.find(sid, caller);
    if (known !== null && isDead(known.record.state)) throw deathError(known.record, this.#options.clock.now());
    if (known !== null && known.record.state !== 'reserved') throw new PalestraError('session_exists');
    const hosted = await this.#environmentOf(known, request);
    const env = await request.variant(hosted);
    const live = known ?? (await this.#registry.insert(this.#newRecord(sid, caller, hosted)));
    if (live === null) throw new PalestraError('session_exists');
    const task = { ...request.task, toolset_name: request.toolsetName };
    const claim = { versionId: hosted.versionId, idleTimeoutMs: hosted.idleTimeoutMs, env, task };
    const claimed = await this.#registry.advance(live, 'starting', claim, 'reserved');
    if (!claimed) throw live.signal.aborted ? (live.signal.reason as Error) : new PalestraError('session_exists');
    live.hosted = hosted;
    await this.#open(live, hosted, {
      sid,
      env,
      task: request.task,
      toolsetName: request.toolsetName,
      secrets: request.secrets ?? live.secrets ?? {},
    });
  }

  async #open(live: LiveSession, hosted: HostedEnvironment, create: BackendCreate): Promise<void> {
    try {
      const ref = await hosted.backend.create(create, live.signal);
      live.backend = hosted.backend.session(ref);
      if (!(await this.#registry.advance(live, 'starting', { ref }, 'starting'))) {
        await this.#teardown(live);
        throw live.signal.aborted ? (live.signal.reason as Error) : new PalestraError('session_deleted');
      }
      live.secrets = null;
      live.upstreamSeenAt = this.#options.clock.now();
    } catch (error) {
      await this.#registry.advance(live, 'reserved', { env: null, task: null });
      throw error;
    }
  }

  async #environmentOf(known: LiveSession | null, request: CreateRequest): Promise<HostedEnvironment> {
    if (known?.hosted) return known.hosted;
    if (known?.record.versionId) return this.#options.directory.version(known.record.versionId);
    return request.resolve();
  }

  /** The environment that a SID is pinned to; null when the SID is unknown or not pinned yet. */
  async environmentOf(caller: Caller, sid: string): Promise<HostedEnvironment | null> {
    const live = await this.#registry.find(sid, caller);
    if (live === null || live.record.versionId === null) return null;
    live.lastSeenAt = this.#options.clock.now();
    live.hosted ??= await this.#options.directory.version(live.record.versionId);
    return live.hosted;
  }

  async prompt(caller: Caller, sid: string): Promise<MessageBlock[]> {
    const live = await this.#registry.bound(sid, caller);
    return this.#setup.whileWaiting(live, async (backend) => backend.prompt(live.signal));
  }

  async messages(caller: Caller, sid: string): Promise<Message[]> {
    const live = await this.#registry.bound(sid, caller);
    return this.#setup.whileWaiting(live, async (backend) => backend.messages(live.signal));
  }

  /** Does not wait for setup. */
  async taskTools(caller: Caller, sid: string): Promise<ToolsAnswer> {
    const live = await this.#registry.bound(sid, caller);
    this.#setup.throwIfFailed(live);
    const backend = await this.#registry.backend(live);
    return abortable(backend.taskTools(live.signal), live.signal);
  }

  /** See {@link CallRunner.open}. `taskId` is set by a client that resumes. */
  async call(caller: Caller, sid: string, request: { tool: string; input: JsonObject; taskId: string | null }): Promise<OpenCall> {
    const live = await this.#registry.bound(sid, caller);
    return this.#calls.open(live, {
      kind: 'call',
      tool: request.tool,
      input: stringifyJson(request.input),
      taskId: request.taskId,
      run: (backend, call) => backend.call({ ...call, tool: request.tool, input: request.input }, live.signal),
    });
  }

  /** Comparative rewards for the trajectories of one task; changes nothing of the episode. */
  async scoreGroup(caller: Caller, sid: string, request: { candidates: GroupCandidate[]; taskId: string | null }): Promise<OpenCall> {
    const live = await this.#registry.bound(sid, caller).catch((error: unknown) => {
      // 404 tells the client "unsupported"; a SID that nobody knows must not.
      throw error instanceof PalestraError && error.code === 'session_not_found' ? new PalestraError('session_deleted') : error;
    });
    return this.#calls.open(live, {
      kind: 'score_group',
      tool: 'score_group',
      input: stringifyJson({ candidates: request.candidates }),
      taskId: request.taskId,
      run: async (backend, { taskId }) => ({
        text: await backend.scoreGroup(request.candidates, taskId, live.signal),
        ok: true,
        reason: null,
        reward: null,
        finished: false,
      }),
    });
  }

  /** Keeps the session alive; also a failed one. */
  async ping(caller: Caller, sid: string): Promise<void> {
    const live = await this.#registry.bound(sid, caller);
    this.#reaper.pingUpstream(live);
  }

  /** Ends the session and runs its teardown. Idempotent; unknown SIDs are fine. */
  async delete(caller: Caller, sid: string): Promise<void> {
    const live = await this.#registry.find(sid, caller);
    if (live === null || isDead(live.record.state)) return;
    const hadBackend = live.record.ref !== null;
    if ((await this.#registry.advance(live, 'closed')) && hadBackend) await this.#teardown(live);
  }

  async #teardown(live: LiveSession): Promise<void> {
    try {
      const backend = await this.#registry.backend(live);
      await backend.delete(AbortSignal.timeout(TEARDOWN_DEADLINE_MS));
    } catch (error) {
      this.#options.onBackgroundError(error, live.record.sid);
    }
  }

  #newRecord(sid: string, caller: Caller, hosted: HostedEnvironment | null): SessionRecord {
    const now = this.#options.clock.now();
    return {
      sid,
      orgId: caller.orgId,
      userId: caller.userId,
      keyId: caller.keyId,
      versionId: hosted?.versionId ?? null,
      env: null,
      task: null,
      state: 'reserved',
      version: 1,
      ref: null,
      failure: null,
      failureClass: null,
      idleTimeoutMs: hosted?.idleTimeoutMs ?? this.#options.idleTimeoutMs,
      createdAt: now,
      lastSeenAt: now,
      endedAt: null,
    };
  }
}
