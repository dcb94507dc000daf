import { type Clock, newUuid } from '@palestra/kit';
import { type JsonObject, PalestraError, parseJson, stringifyJson } from '@palestra/protocol';
import { withDeadline } from '../lifecycle/with-deadline.ts';
import { forgetEpisode, openEpisode } from '../lifecycle/open-episode.ts';
import type { Restorer } from '../lifecycle/restorer.ts';
import type { SetupGate } from '../lifecycle/setup-gate.ts';
import type { BackendCreate, BackendSessionRef, SecretMap } from '../ports/backend.port.ts';
import type { CallLedger, ReplicaLeases } from '../ports/call-ledger.port.ts';
import type { Caller, EnvironmentDirectory, HostedEnvironment } from '../ports/directory.port.ts';
import type { SealedRow, SecretBox } from '../ports/secret-box.port.ts';
import { ADMITTED_RESERVATION_TIMEOUT_MS, defaultSessionPolicy, RESERVATION_TIMEOUT_MS } from '../ports/session-policy.ts';
import type { Recording, SessionRecord, SessionStore } from '../ports/session-store.port.ts';
import { deathError, type LiveSession } from '../registry/live-session.ts';
import { SecretMask } from '../registry/secrets.ts';
import { type SessionRegistry, SID } from '../registry/session-registry.ts';
import { isDead } from '../state.ts';
import type { Admission } from './admission.ts';

export interface Reservation {
  /** The SID that the client got or chose before; null for a new one. */
  sid: string | null;
  /** null when the request named no deployment; then `/create` does. */
  hosted: HostedEnvironment | null;
  secrets: SecretMap | null;
  recording: Recording | null;
}

export interface CreateRequest {
  sid: string;
  /** Called only when the reservation did not pin an environment. */
  resolve: () => Promise<HostedEnvironment>;
  /** The variant of that environment to open; null for the default. Throws `unknown_variant`. */
  variant: (hosted: HostedEnvironment) => Promise<string | null>;
  task: BackendCreate['task'];
  toolsetName: string | null;
  secrets: SecretMap | null;
  recording: Recording | null;
  /** Aborts when the client has left. Ends only a wait for a slot. */
  signal?: AbortSignal;
  /** Called while the request waits, each time the environment's own server refuses it for lack of capacity. */
  onFull?: (refusal: PalestraError) => void;
}

/** Opens a session that begins with the first calls of another one. */
export interface ForkRequest {
  sid: string;
  /** With how many calls to begin; null for all that have ended. */
  atCall: number | null;
  recording: Recording | null;
}

export interface SessionOpenerOptions {
  store: SessionStore;
  ledger: CallLedger;
  leases: ReplicaLeases;
  directory: EnvironmentDirectory;
  clock: Clock;
  replicaId: string;
  box: SecretBox;
  /** How long a client may wait until the environment's own server has capacity, milliseconds. */
  queue: { patienceMs: number };
}

/** How long a repeated `/create` waits for the first one. */
const REPEAT_WAIT_MS = 120_000;
const REPEAT_POLL_MS = 250;
/** How many processes may die under the constructor before the session fails. */
const MAX_DEATHS = 3;

const versionOf = (hosted: HostedEnvironment, sid: string): HostedEnvironment => hosted.forSession?.(sid) ?? hosted;

/** Reserves SIDs and opens episodes for them: new episodes, repeated attempts, and forks. */
export class SessionOpener {
  /** Creates that run now, by SID: of two concurrent creates one wins without a request to the store. */
  readonly #creating = new Map<string, Promise<void>>();
  readonly #registry: SessionRegistry;
  readonly #setup: SetupGate;
  readonly #restorer: Restorer;
  readonly #admission: Admission;
  readonly #options: SessionOpenerOptions;
  #refusesNew = false;

  constructor(registry: SessionRegistry, setup: SetupGate, restorer: Restorer, admission: Admission, options: SessionOpenerOptions) {
    this.#registry = registry;
    this.#setup = setup;
    this.#restorer = restorer;
    this.#admission = admission;
    this.#options = options;
  }

  refuseNew(): void {
    this.#refusesNew = true;
  }

  /**
   * Reserves a SID and returns it. Idempotent: a SID that exists is returned as it is. Throws `shutting_down`, `capacity_exhausted`, the error
   * of a dead session, and `session_not_found` for a SID of another organisation.
   */
  async reserve(caller: Caller, reservation: Reservation): Promise<string> {
    this.#assertAcceptsNew();
    if (reservation.sid !== null) {
      const known = await this.#registry.find(reservation.sid, caller);
      if (known !== null) {
        if (isDead(known.record.state)) throw deathError(known.record, this.#options.clock.now());
        return known.record.sid;
      }
    }
    const sid = reservation.sid ?? newUuid();
    const { secrets, recording } = reservation;
    const hosted = reservation.hosted === null ? null : versionOf(reservation.hosted, sid);
    await this.#admission.reserve(caller);
    const live = await this.#registry.insert({
      ...this.#newRecord(sid, caller, hosted),
      secrets: this.#sealed(secrets, { sid, orgId: caller.orgId }),
      recording,
    });
    if (live === null) {
      // Another attempt of the client has taken the SID since, or it belongs to another organisation.
      if ((await this.#registry.find(sid, caller)) === null) throw new PalestraError('session_not_found');
      return sid;
    }
    live.hosted = hosted;
    return sid;
  }

  #assertAcceptsNew(): void {
    if (this.#refusesNew) throw new PalestraError('shutting_down', { retryAfterSeconds: 1, backendStarting: true });
  }

  #sealed(secrets: SecretMap | null, row: SealedRow): Uint8Array | null {
    return secrets === null || Object.keys(secrets).length === 0 ? null : this.#options.box.seal(secrets, row);
  }

  /**
   * Opens the episode. Of concurrent creates of one SID exactly one wins. After a failed one the SID can be used again. Throws `session_exists`,
   * `session_moved` when the slot is on another process, `capacity_exhausted`, `setup_timeout`, and the errors of the backend.
   */
  async create(caller: Caller, request: CreateRequest): Promise<void> {
    this.#assertAcceptsNew();
    const { sid } = request;
    const first = this.#creating.get(sid);
    if (first !== undefined) {
      if (!(await this.#options.store.clearCreateUndelivered(sid))) throw new PalestraError('session_exists');
      // The client of the first attempt, which did not get its answer.
      await first.catch(() => {});
    }
    const creating = this.#create(caller, request, first !== undefined).finally(() => this.#creating.delete(sid));
    this.#creating.set(sid, creating);
    await creating;
  }

  /** `repeated`: the client has certainly sent this request before. */
  async #create(caller: Caller, request: CreateRequest, repeated: boolean): Promise<void> {
    const { sid } = request;
    const known = await this.#registry.find(sid, caller);
    if (known !== null && isDead(known.record.state)) throw deathError(known.record, this.#options.clock.now());
    const hosted = await this.#environmentOf(known, request);
    const env = await request.variant(hosted);
    const mask = new SecretMask(request.secrets ?? {});
    const requested = { ...request.task, toolset_name: request.toolsetName };
    const task = parseJson(mask.hide(stringifyJson(requested))) as JsonObject;
    const earlier = known === null || known.record.state === 'reserved' ? 'none' : await this.#classifyRepeat(known, env, task, repeated);
    if (earlier === 'open') return;
    if (earlier === 'other') throw new PalestraError('session_exists');
    if (known === null) await this.#admission.reserve(caller);
    const live = known ?? (await this.#registry.insert(this.#newRecord(sid, caller, hosted)));
    if (live === null) throw new PalestraError('session_exists');
    await this.#admission.admit(live, hosted, caller, request.signal ?? null, () => {});
    const { ownerReplicaId } = live.record;
    if (ownerReplicaId !== null && ownerReplicaId !== this.#options.replicaId)
      throw new PalestraError('session_moved', { retryAfterSeconds: 1 });
    const claimed = await this.#registry.advance(live, 'starting', this.#startingRecord(live, hosted, env, task, request), 'reserved');
    if (!claimed) throw live.signal.aborted ? (live.signal.reason as Error) : new PalestraError('session_exists');
    live.hosted = hosted;
    const opening = {
      sid,
      env,
      task: request.task,
      toolsetName: request.toolsetName,
      secrets: this.#registry.secrets(live),
      again: earlier === 'abandoned',
    };
    await this.#open(live, hosted, opening, request.onFull);
  }

  #startingRecord(
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
      secrets: this.#sealed(request.secrets, live.record) ?? live.record.secrets,
      recording: live.record.recording ?? request.recording,
    };
  }

  /**
   * Classifies a `/create` for a session that exists. `open`: it repeats the request that opened the session, whose client did not get the
   * answer because its connection or the process broke. `abandoned`: the same, but the first attempt opened no episode, because the process
   * died or the opening failed. `other`: another request.
   */
  async #classifyRepeat(
    known: LiveSession,
    env: string | null,
    task: JsonObject,
    repeated: boolean,
  ): Promise<'open' | 'abandoned' | 'other'> {
    const { store, leases, replicaId } = this.#options;
    const { record } = known;
    const isOurs = record.writtenBy === replicaId;
    // Opening failed and the store was unavailable, so the failure was not recorded.
    const failureUnrecorded = isOurs && record.state === 'starting' && record.ref === null && !known.isOpening;
    if (!failureUnrecorded && (record.env !== env || stringifyJson(record.task) !== stringifyJson(task))) return 'other';
    if (failureUnrecorded || (!isOurs && !(await leases.confirm(record.writtenBy)).alive)) {
      if (record.ref !== null) return record.state === 'finished' || record.state === 'failed' ? 'other' : 'open';
      const isReset = await this.#registry.advance(known, 'reserved', { ownerReplicaId: null }, 'starting');
      return isReset ? 'abandoned' : 'other';
    }
    if (!repeated && !(await store.clearCreateUndelivered(record.sid))) return 'other';
    return (await this.#waitUntilOpened(known)) ? 'open' : 'other';
  }

  /** Waits for the first attempt, whose constructor may still run, also on another process. False when it did not end in time. */
  async #waitUntilOpened(known: LiveSession): Promise<boolean> {
    for (let waited = 0; known.record.ref === null && waited < REPEAT_WAIT_MS; waited += REPEAT_POLL_MS) {
      await this.#options.clock.sleep(REPEAT_POLL_MS, known.signal);
      await this.#registry.refresh(known);
      if (known.record.state === 'reserved') throw new PalestraError('session_moved', { retryAfterSeconds: 1 });
    }
    return known.record.ref !== null;
  }

  async #open(live: LiveSession, hosted: HostedEnvironment, create: BackendCreate, onFull: CreateRequest['onFull']): Promise<void> {
    const { setupTimeoutMs } = hosted.policy;
    const onTimeout = () =>
      new PalestraError('setup_timeout', { detail: `The environment took longer than ${setupTimeoutMs / 1000} s to open the session.` });
    // Stops the opening after the deadline, when no request waits for it.
    const abandoned = new AbortController();
    // A process that wrongly considered this one dead may have started over. Its episode must not be bound or undone here.
    const { version } = live.record;
    const isOurs = (record: SessionRecord) => record.version === version;
    live.isOpening = true;
    try {
      const signal = AbortSignal.any([live.signal, abandoned.signal]);
      const reportFull = (refusal: PalestraError) => onFull?.(this.#registry.mask(live).hideInError(refusal) as PalestraError);
      const ref = await withDeadline(
        this.#options.clock,
        this.#createWithRetry(signal, hosted, create, reportFull),
        setupTimeoutMs,
        onTimeout,
      );
      live.lastSeenAt = live.lastRequestAt = live.upstreamSeenAt = this.#options.clock.now();
      let isBound = false;
      try {
        isBound = await this.#registry.advance(live, 'starting', { ref }, isOurs);
      } finally {
        if (!isBound) await this.#deleteUnbound(live, hosted, ref);
      }
      if (!isBound) throw live.signal.aborted ? (live.signal.reason as Error) : new PalestraError('session_moved');
      live.backend = hosted.backend.session(ref);
      this.#setup.watch(live);
    } catch (error) {
      abandoned.abort(error);
      // It keeps its slot for a moment, because clients try again with other arguments.
      const heartbeatTimeoutMs = Math.min(ADMITTED_RESERVATION_TIMEOUT_MS, hosted.policy.heartbeatTimeoutMs);
      const unbound = { env: null, task: null, ownerReplicaId: null, heartbeatTimeoutMs };
      await this.#registry.advance(live, 'reserved', unbound, isOurs);
      throw this.#registry.mask(live).hideInError(error);
    } finally {
      live.isOpening = false;
    }
  }

  /** Deletes an episode without a session. Not on a shared server when the SID may already mean the episode of another process. */
  async #deleteUnbound(live: LiveSession, { backend, owned }: HostedEnvironment, ref: BackendSessionRef): Promise<void> {
    const { state, writtenBy } = live.record;
    if (!owned && !isDead(state) && writtenBy !== this.#options.replicaId) return;
    await forgetEpisode(backend, ref);
  }

  /** Opens an episode. While the environment's own server has no capacity, the client waits here. */
  async #createWithRetry(
    signal: AbortSignal,
    { backend }: HostedEnvironment,
    create: BackendCreate,
    onFull: (refusal: PalestraError) => void,
  ): Promise<BackendSessionRef> {
    const { clock, queue } = this.#options;
    const deadline = clock.now() + queue.patienceMs;
    let deaths = 0;
    for (;;) {
      try {
        return await openEpisode(backend, deaths === 0 ? create : { ...create, again: true }, signal);
      } catch (error) {
        if (!(error instanceof PalestraError)) throw error;
        if (error.code === 'capacity_exhausted') onFull(error);
        if (clock.now() >= deadline) throw error;
        // The process died under the constructor. No episode is bound yet, so a new process may try.
        const died = error.code === 'session_lost' && (deaths += 1) < MAX_DEATHS && !signal.aborted;
        if (error.code !== 'capacity_exhausted' && !died) throw error;
        // Jitter, so that waiting requests do not retry at the same moment.
        await clock.sleep((error.retryAfterSeconds ?? 1) * 1_000 * (0.75 + Math.random() / 2), signal);
      }
    }
  }

  /**
   * Opens a session of the same task that begins with the first calls of `request.sid`, replayed and checked, and returns its SID. Works also
   * for ended sessions, unless they had secrets, which their end erased. Throws `not_deterministic` unless the environment declares itself
   * deterministic, `invalid_request` for a bad `atCall`, `capacity_exhausted`, and the errors of a replay.
   */
  async fork(caller: Caller, request: ForkRequest): Promise<string> {
    this.#assertAcceptsNew();
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
      secrets: this.#sealed(this.#registry.secrets(source), { sid, orgId: caller.orgId }),
      recording: request.recording,
      forkedFrom: record.sid,
      forkedAtCall: atCall,
    };
    await this.#admission.reserve(caller);
    const live = await this.#registry.insert(fork);
    if (live === null) throw new PalestraError('session_exists');
    live.hosted = hosted;
    await this.#options.ledger.copy(journal.slice(0, atCall), sid);
    await this.#admission.admit(live, hosted, caller, null, () => {});
    const { heartbeatTimeoutMs, idleTimeoutMs } = hosted.policy;
    await this.#registry.advance(live, 'starting', {
      ownerReplicaId: hosted.owned ? this.#options.replicaId : null,
      admittedAt: live.record.admittedAt ?? this.#options.clock.now(),
      heartbeatTimeoutMs,
      idleTimeoutMs,
    });
    await this.#restorer.restore(live);
    return sid;
  }

  async #environmentOf(known: LiveSession | null, request: CreateRequest): Promise<HostedEnvironment> {
    if (known?.hosted) return known.hosted;
    if (known?.record.versionId) return this.#options.directory.version(known.record.versionId);
    return versionOf(await request.resolve(), request.sid);
  }

  #newRecord(sid: string, caller: Caller, hosted: HostedEnvironment | null): SessionRecord {
    if (!SID.test(sid))
      throw new PalestraError('invalid_request', {
        detail: 'A session id has 1 to 500 printable ASCII characters, and no space at its ends.',
      });
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
