import { type Clock, newUuid } from '@palestra/kit';
import {
  type GroupCandidate,
  type JsonObject,
  type JsonValue,
  type Message,
  type MessageBlock,
  PalestraError,
  parseJson,
  stringifyJson,
  type ToolsAnswer,
} from '@palestra/protocol';
import { Admission, type AdmissionStore, type QueuePlace } from './admission.ts';
import type { BackendCreate, BackendSessionRef, SecretMap } from './backend.port.ts';
import type { CallLedger, ReplicaLeases } from './call-ledger.port.ts';
import { CallRunner, type OpenCall } from './call-runner.ts';
import { withDeadline } from './deadline.ts';
import type { Caller, EnvironmentDirectory, HostedEnvironment } from './directory.port.ts';
import { deathError, type LiveSession } from './live-session.ts';
import type { SessionObserver } from './observer.port.ts';
import { type Place, Placement } from './placement.ts';
import { SessionReaper } from './reaper.ts';
import { Restorer } from './restorer.ts';
import { type SecretBox, SecretMask } from './secrets.ts';
import { ADMITTED_RESERVATION_TIMEOUT_MS, defaultSessionPolicy, RESERVATION_TIMEOUT_MS } from './session-policy.ts';
import { SessionRegistry } from './session-registry.ts';
import type { Recording, SessionRecord, SessionStore } from './session-store.port.ts';
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
  box: SecretBox;
  observer: SessionObserver;
  admission: AdmissionStore;
  /** Clients that may wait for slots of one environment, and how long, milliseconds. */
  queue: { limit: number; patienceMs: number };
  /** Told of failures that no client waits for (teardown, a late write). */
  onBackgroundError: (error: unknown, sid: string) => void;
}

export interface Reservation {
  /** The SID that an earlier answer gave; the same one is given again. */
  sid: string | null;
  /** null: the request named no deployment; `/create` decides. */
  hosted: HostedEnvironment | null;
  secrets: SecretMap | null;
  recording: Recording | null;
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
  recording: Recording | null;
  /** Aborts when the client has left; only a wait for a slot ends by it. */
  signal?: AbortSignal;
}

/** Opens a session that begins with the first calls of another one. */
export interface ForkRequest {
  sid: string;
  /** How many calls to begin with; null = all that have ended. */
  atCall: number | null;
  recording: Recording | null;
}

const TEARDOWN_DEADLINE_MS = 60_000;
const REPEAT_WAIT_MS = 120_000;
const REPEAT_POLL_MS = 250;

/**
 * Sessions and their tool calls, whatever dialect the client speaks and whatever kind of backend runs the environment. Knows
 * neither the web framework nor the database. Every method names the caller; another tenant's session does not exist for him.
 */
export class SessionEngine {
  readonly #registry: SessionRegistry;
  readonly #setup: SetupGate;
  readonly #restorer: Restorer;
  readonly #placement: Placement;
  readonly #admission: Admission;
  readonly #calls: CallRunner;
  readonly #reaper: SessionReaper;
  readonly #options: SessionEngineOptions;
  /** SIDs that are being claimed right now, so that of two concurrent claims one wins without asking the store. */
  readonly #claiming = new Map<string, Promise<void>>();
  #refusesNew = false;

  constructor(options: SessionEngineOptions) {
    this.#options = options;
    const { store, directory, clock, replicaId, box, observer } = options;
    this.#registry = new SessionRegistry(store, directory, clock, replicaId, box, observer);
    this.#restorer = new Restorer(this.#registry, options);
    this.#setup = new SetupGate(this.#registry, this.#restorer, options);
    this.#calls = new CallRunner(this.#registry, this.#setup, this.#restorer, options);
    this.#reaper = new SessionReaper(this.#registry, options, (live) => this.#teardown(live));
    this.#admission = new Admission(this.#registry, options);
    this.#placement = new Placement(this.#registry, this.#reaper, options);
  }

  /** Starts the timers: heartbeats to the store, expiry. */
  start(): void {
    this.#reaper.start();
  }

  /**
   * Where the session's requests are to be served: here, or by the process at an address. Takes a session over whose owner died,
   * when it can be restored.
   */
  place(caller: Caller, sid: string): Promise<Place> {
    return this.#placement.of(caller, sid);
  }

  /** The session is not where `place` said: reads it again. */
  relocate(caller: Caller, sid: string): Promise<void> {
    return this.#placement.refresh(caller, sid);
  }

  /** The stream of a call that was passed on to another process broke before its end was delivered. */
  async noteCallBroken(taskId: string): Promise<void> {
    await this.#options.ledger.broken(taskId);
  }

  /** Waits for running calls, `graceMs` at most, then hands over what can live elsewhere, and waits for late writes. */
  async stop(graceMs: number): Promise<void> {
    await this.#calls.drain(graceMs);
    await this.#placement.handOver();
    await this.#reaper.stop();
    await this.#options.ledger.drain();
    await Promise.all([...this.#registry.all()].map((live) => live.writes));
  }

  /** Sessions of this process that end with it: nobody else can serve or restore them. */
  bound(): number {
    return this.#placement.bound();
  }

  /** This process is about to end: others open new sessions. */
  refuseNew(): void {
    this.#refusesNew = true;
    this.#placement.refuseNew();
    this.#admission.drain();
  }

  /** Gives out a SID. Idempotent: the SID of an earlier answer comes back as it is. */
  async reserve(caller: Caller, reservation: Reservation): Promise<string> {
    this.#assertOpen();
    if (reservation.sid !== null) {
      const known = await this.#registry.find(reservation.sid, caller);
      if (known !== null) {
        if (isDead(known.record.state)) throw deathError(known.record, this.#options.clock.now());
        return known.record.sid;
      }
    }
    const sid = reservation.sid ?? newUuid();
    const { hosted, secrets, recording } = reservation;
    const live = await this.#registry.insert({ ...this.#newRecord(sid, caller, hosted), secrets: this.#sealed(secrets), recording });
    if (live === null) {
      // Taken in the meantime: by the same client's other attempt, or it is somebody else's.
      if ((await this.#registry.find(sid, caller)) === null) throw new PalestraError('session_not_found');
      return sid;
    }
    live.hosted = hosted;
    return sid;
  }

  #assertOpen(): void {
    if (this.#refusesNew) throw new PalestraError('shutting_down', { retryAfterSeconds: 1, backendStarting: true });
  }

  #sealed(secrets: SecretMap | null): Uint8Array | null {
    return secrets === null || Object.keys(secrets).length === 0 ? null : this.#options.box.seal(secrets);
  }

  /**
   * Waits until a reserved session has a slot of its environment, or returns at once where nothing is limited. Errors as
   * {@link Admission.admit}. A session that was not admitted before is by `create`.
   */
  async admit(caller: Caller, sid: string, signal: AbortSignal, onPlace: (place: QueuePlace) => void): Promise<void> {
    const live = await this.#registry.find(sid, caller);
    if (live === null || live.record.versionId === null) return;
    await this.#admission.admit(live, await this.#registry.hosted(live), caller, signal, onPlace);
  }

  /** Opens the episode. Of concurrent creates of one SID exactly one wins; a refused one leaves the SID unbound. */
  async create(caller: Caller, request: CreateRequest): Promise<void> {
    this.#assertOpen();
    const { sid } = request;
    const first = this.#claiming.get(sid);
    if (first !== undefined) {
      if (!(await this.#options.store.healCreate(sid))) throw new PalestraError('session_exists');
      // The same client again, who did not hear how its first attempt ends.
      await first.catch(() => {});
    }
    const creating = this.#create(caller, request, first !== undefined).finally(() => this.#claiming.delete(sid));
    this.#claiming.set(sid, creating);
    await creating;
  }

  /** `repeated`: its client is known to have asked before. */
  async #create(caller: Caller, request: CreateRequest, repeated: boolean): Promise<void> {
    const { sid } = request;
    const known = await this.#registry.find(sid, caller);
    if (known !== null && isDead(known.record.state)) throw deathError(known.record, this.#options.clock.now());
    const hosted = await this.#environmentOf(known, request);
    const env = await request.variant(hosted);
    const mask = new SecretMask(request.secrets ?? {});
    const asked = { ...request.task, toolset_name: request.toolsetName };
    const task = parseJson(mask.hide(stringifyJson(asked))) as JsonObject;
    const begun = known === null || known.record.state === 'reserved' ? 'no' : await this.#isRepeat(known, env, task, repeated);
    if (begun === 'open') return;
    if (begun === 'other') throw new PalestraError('session_exists');
    const live = known ?? (await this.#registry.insert(this.#newRecord(sid, caller, hosted)));
    if (live === null) throw new PalestraError('session_exists');
    await this.#admission.admit(live, hosted, caller, request.signal ?? null, () => {});
    const { ownerReplicaId } = live.record;
    if (ownerReplicaId !== null && ownerReplicaId !== this.#options.replicaId)
      throw new PalestraError('session_moved', { retryAfterSeconds: 1 });
    const claimed = await this.#registry.advance(live, 'starting', this.#claim(live, hosted, env, task, request), 'reserved');
    if (!claimed) throw live.signal.aborted ? (live.signal.reason as Error) : new PalestraError('session_exists');
    live.hosted = hosted;
    await this.#open(live, hosted, {
      sid,
      env,
      task: request.task,
      toolsetName: request.toolsetName,
      secrets: this.#registry.secrets(live),
      again: begun === 'abandoned',
    });
  }

  #claim(
    live: LiveSession,
    hosted: HostedEnvironment,
    env: string | null,
    task: JsonObject,
    request: CreateRequest,
  ): Partial<SessionRecord> {
    const { policy } = hosted;
    return {
      versionId: hosted.versionId,
      environment: `${hosted.owner}/${hosted.name}`,
      ownerReplicaId: hosted.owned ? this.#options.replicaId : null,
      admittedAt: live.record.admittedAt ?? this.#options.clock.now(),
      heartbeatTimeoutMs: policy.heartbeatTimeoutMs,
      idleTimeoutMs: policy.idleTimeoutMs,
      env,
      task,
      secrets: this.#sealed(request.secrets) ?? live.record.secrets,
      recording: live.record.recording ?? request.recording,
    };
  }

  /**
   * What a `/create` for a session that exists is: `open`, when it comes from the client that opened it and never read the answer,
   * because it asks for the same and the connection or the process broke that would have told it; `abandoned`, when that process died
   * before the environment answered, so that it is to be opened anew; `other` is a second one.
   */
  async #isRepeat(known: LiveSession, env: string | null, task: JsonObject, repeated: boolean): Promise<'open' | 'abandoned' | 'other'> {
    const { store, leases, replicaId } = this.#options;
    const { record } = known;
    if (record.env !== env || stringifyJson(record.task) !== stringifyJson(task)) return 'other';
    if (record.writtenBy !== replicaId && !(await leases.confirm(record.writtenBy)).alive) {
      if (record.ref !== null) return record.state === 'finished' || record.state === 'failed' ? 'other' : 'open';
      const back = await this.#registry.advance(known, 'reserved', { ownerReplicaId: null }, 'starting');
      return back ? 'abandoned' : 'other';
    }
    if (!repeated && !(await store.healCreate(record.sid))) return 'other';
    return (await this.#opened(known)) ? 'open' : 'other';
  }

  /** The constructor may still be running for the first attempt, on another process. */
  async #opened(known: LiveSession): Promise<boolean> {
    for (let waited = 0; known.record.ref === null && waited < REPEAT_WAIT_MS; waited += REPEAT_POLL_MS) {
      await this.#options.clock.sleep(REPEAT_POLL_MS, known.signal);
      await this.#registry.refresh(known);
      if (known.record.state === 'reserved') throw new PalestraError('session_moved', { retryAfterSeconds: 1 });
    }
    return known.record.ref !== null;
  }

  /** The answer of a `/create` broke before its client had read it. */
  async noteCreateBroken(sid: string): Promise<void> {
    await this.#options.store.noteCreateBroken(sid).catch((error: unknown) => this.#options.onBackgroundError(error, sid));
  }

  async #open(live: LiveSession, hosted: HostedEnvironment, create: BackendCreate): Promise<void> {
    const { setupTimeoutMs } = hosted.policy;
    const tooLong = () =>
      new PalestraError('setup_timeout', { detail: `The environment took longer than ${setupTimeoutMs / 1000} s to open the session.` });
    try {
      const ref = await withDeadline(this.#options.clock, this.#createPatiently(live, hosted, create), setupTimeoutMs, tooLong);
      if (!(await this.#registry.advance(live, 'starting', { ref }, 'starting'))) {
        await hosted.backend
          .session(ref)
          .delete(AbortSignal.timeout(TEARDOWN_DEADLINE_MS))
          .catch(() => {});
        throw live.signal.aborted ? (live.signal.reason as Error) : new PalestraError('session_moved');
      }
      live.backend = hosted.backend.session(ref);
      live.upstreamSeenAt = this.#options.clock.now();
    } catch (error) {
      // Its slot stays its own for a moment: clients try again with other arguments.
      const heartbeatTimeoutMs = Math.min(ADMITTED_RESERVATION_TIMEOUT_MS, hosted.policy.heartbeatTimeoutMs);
      const unbound = { env: null, task: null, ownerReplicaId: null, heartbeatTimeoutMs };
      await this.#registry.advance(live, 'reserved', unbound, 'starting');
      throw this.#registry.mask(live).hideInError(error);
    }
  }

  /** The environment's own server may be full, too: then its clients wait here, where they are told so. */
  async #createPatiently(live: LiveSession, { backend }: HostedEnvironment, create: BackendCreate): Promise<BackendSessionRef> {
    const { clock, queue } = this.#options;
    const deadline = clock.now() + queue.patienceMs;
    for (;;) {
      try {
        return await backend.create(create, live.signal);
      } catch (error) {
        const full = error instanceof PalestraError && error.code === 'capacity_exhausted';
        if (!full || clock.now() >= deadline) throw error;
        // Jitter, so that all who wait do not come back at the same moment.
        await clock.sleep((error.retryAfterSeconds ?? 1) * 1_000 * (0.75 + Math.random() / 2), live.signal);
      }
    }
  }

  /**
   * A new session of the same task that begins with the first calls of `request.sid`, replayed and checked. Only for environments
   * that declare themselves deterministic. Ended sessions can be forked as well, unless they had secrets, which are erased by then.
   */
  async fork(caller: Caller, request: ForkRequest): Promise<string> {
    const source = await this.#registry.find(request.sid, caller);
    if (source === null) throw new PalestraError('session_not_found');
    const { record } = source;
    if (record.versionId === null || record.task === null) throw new PalestraError('session_not_found');
    const hosted = await this.#registry.hosted(source);
    if (!hosted.policy.deterministic) throw new PalestraError('not_deterministic');
    await this.#options.ledger.drain();
    const journal = await this.#options.ledger.journal(record.sid);
    const atCall = request.atCall ?? journal.length;
    if (atCall > journal.length) {
      throw new PalestraError('invalid_request', { detail: `at_call: the session has ${journal.length} ended calls, not ${atCall}.` });
    }
    const sid = newUuid();
    const fork: SessionRecord = {
      ...this.#newRecord(sid, caller, hosted),
      env: record.env,
      task: record.task,
      secrets: record.secrets,
      recording: request.recording,
      forkedFrom: record.sid,
      forkedAtCall: atCall,
    };
    const live = await this.#registry.insert(fork);
    if (live === null) throw new PalestraError('session_exists');
    live.hosted = hosted;
    await this.#options.ledger.copy(journal.slice(0, atCall), sid);
    await this.#registry.advance(live, 'starting', { ownerReplicaId: hosted.owned ? this.#options.replicaId : null });
    await this.#restorer.restore(live);
    return sid;
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
    live.lastSeenAt = live.lastRequestAt = this.#options.clock.now();
    live.hosted ??= await this.#options.directory.version(live.record.versionId);
    return live.hosted;
  }

  async prompt(caller: Caller, sid: string): Promise<MessageBlock[]> {
    const live = await this.#registry.bound(sid, caller);
    return this.#hidden(
      live,
      this.#setup.whileWaiting(live, async (backend) => backend.prompt(live.signal)),
    );
  }

  async messages(caller: Caller, sid: string): Promise<Message[]> {
    const live = await this.#registry.bound(sid, caller);
    return this.#hidden(
      live,
      this.#setup.whileWaiting(live, async (backend) => backend.messages(live.signal)),
    );
  }

  /** Does not wait for setup. */
  async taskTools(caller: Caller, sid: string): Promise<ToolsAnswer> {
    const live = await this.#registry.bound(sid, caller);
    return this.#hidden(live, this.#setup.taskTools(live));
  }

  /** An answer of the environment without the session's secrets, or its error without them. */
  async #hidden<T>(live: LiveSession, answer: Promise<T>): Promise<T> {
    const mask = this.#registry.mask(live);
    try {
      return mask.hideIn((await answer) as JsonValue) as T;
    } catch (error) {
      throw mask.hideInError(error);
    }
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
    const live = await this.#registry.bound(sid, caller, 'ping');
    this.#reaper.pingUpstream(live);
  }

  /** Ends the session and runs its teardown. Idempotent; unknown SIDs are fine. */
  async delete(caller: Caller, sid: string): Promise<void> {
    const live = await this.#registry.find(sid, caller);
    if (live === null || isDead(live.record.state)) return;
    const hadBackend = live.record.ref !== null;
    if (!(await this.#registry.advance(live, 'closed'))) return;
    this.#admission.kick();
    if (hadBackend) await this.#teardown(live);
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
      environment: hosted === null ? null : `${hosted.owner}/${hosted.name}`,
      ownerReplicaId: null,
      writtenBy: this.#options.replicaId,
      secrets: null,
      recording: null,
      forkedFrom: null,
      forkedAtCall: null,
      queuedAt: null,
      waitingOn: null,
      slotLimits: null,
      admittedAt: null,
      heartbeatTimeoutMs: Math.min(RESERVATION_TIMEOUT_MS, (hosted?.policy ?? defaultSessionPolicy).heartbeatTimeoutMs),
      idleTimeoutMs: (hosted?.policy ?? defaultSessionPolicy).idleTimeoutMs,
      createdAt: now,
      lastSeenAt: now,
      lastRequestAt: now,
      endedAt: null,
    };
  }
}
