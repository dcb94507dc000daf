import type { Clock } from '@palestra/kit';
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
import { Admission, type QueuePosition } from './admission/admission.ts';
import { type CreateRequest, type ForkRequest, type Reservation, SessionOpener } from './admission/session-opener.ts';
import { CallRunner } from './calls/call-runner.ts';
import { Exchanges } from './calls/exchanges.ts';
import { taskIdOfKey } from './calls/idempotency-key.ts';
import type { OpenCall } from './calls/open-call.ts';
import { Placement, type ServingLocation } from './lifecycle/placement.ts';
import { SessionReaper } from './lifecycle/reaper.ts';
import { Restorer } from './lifecycle/restorer.ts';
import { SetupGate } from './lifecycle/setup-gate.ts';
import type { AdmissionStore } from './ports/admission-store.port.ts';
import type { CallProgress } from './ports/backend-call.ts';
import type { BackendSession } from './ports/backend.port.ts';
import type { CallLedger, CallOutcome, ReplicaLeases } from './ports/call-ledger.port.ts';
import type { Caller, EnvironmentDirectory, HostedEnvironment } from './ports/directory.port.ts';
import type { SessionObserver } from './ports/observer.port.ts';
import type { NativeAction, NativeMessage } from './ports/native.port.ts';
import type { SecretBox } from './ports/secret-box.port.ts';
import type { SessionStore } from './ports/session-store.port.ts';
import type { LiveSession } from './registry/live-session.ts';
import { SessionRegistry } from './registry/session-registry.ts';
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
  /** How many clients may wait for slots of one environment, and for how many milliseconds. */
  queue: { limit: number; patienceMs: number };
  /** Receives failures that no client waits for (teardown, a late write). */
  onBackgroundError: (error: unknown, sid: string) => void;
}

const TEARDOWN_DEADLINE_MS = 60_000;

/**
 * Sessions and their tool calls, for every protocol of clients and every kind of backend. Knows neither the web framework nor the database.
 * Every method takes the caller; sessions of other organisations do not exist for him. Unless a method says otherwise, it throws
 * `session_not_found` for an unknown session, and `session_expired`, `session_deleted`, `session_lost` or the stored failure for a dead one.
 */
export class SessionEngine {
  readonly #registry: SessionRegistry;
  readonly #setup: SetupGate;
  readonly #restorer: Restorer;
  readonly #placement: Placement;
  readonly #admission: Admission;
  readonly #opener: SessionOpener;
  readonly #calls: CallRunner;
  readonly #exchanges: Exchanges;
  readonly #reaper: SessionReaper;
  readonly #options: SessionEngineOptions;

  constructor(options: SessionEngineOptions) {
    this.#options = options;
    const { store, directory, clock, replicaId, box, observer } = options;
    this.#registry = new SessionRegistry(store, directory, clock, replicaId, box, observer);
    this.#restorer = new Restorer(this.#registry, options);
    this.#reaper = new SessionReaper(this.#registry, options, (live, ignoresErrors) => this.#teardown(live, ignoresErrors));
    this.#setup = new SetupGate(this.#registry, this.#restorer, options, (live) => this.#reaper.releaseUpstream(live));
    this.#calls = new CallRunner(this.#registry, this.#setup, this.#restorer, options);
    this.#exchanges = new Exchanges(this.#registry, this.#setup, this.#calls);
    this.#admission = new Admission(this.#registry, options);
    this.#opener = new SessionOpener(this.#registry, this.#setup, this.#restorer, this.#admission, options);
    this.#placement = new Placement(this.#registry, this.#reaper, options);
  }

  /** Starts the timers: heartbeats to the store, expiry. */
  start(): void {
    this.#reaper.start();
  }

  /**
   * The process that serves the session: this one, or another one at an address. Takes over a session whose owner died, if it can be
   * restored. `id`: a SID, or an id that the client chose. An unknown session is served here. Throws `session_moved` during shutdown.
   */
  async locate(caller: Caller, id: string): Promise<ServingLocation> {
    return this.#placement.locate(caller, await this.sidOf(caller, id));
  }

  /** Reads the session again, because it is not where `locate` said. */
  async refreshLocation(caller: Caller, id: string): Promise<void> {
    await this.#placement.refresh(caller, await this.sidOf(caller, id));
  }

  /** The client of a call that was forwarded to another process did not receive its end. */
  async markCallUndelivered(taskId: string): Promise<void> {
    await this.#options.ledger.markUndelivered(taskId);
  }

  /** Waits for running calls, at most `graceMs`, then hands over sessions that other processes can restore, and waits for late writes. */
  async stop(graceMs: number): Promise<void> {
    await this.#calls.drain(graceMs);
    await this.#placement.handOver();
    await this.#reaper.stop();
    await this.#options.ledger.drain();
    await Promise.all([...this.#registry.all()].map((live) => live.writes));
  }

  /** How many sessions end with this process, because no other process can serve or restore them. */
  countUnmovable(): number {
    return this.#placement.countUnmovable();
  }

  /** Refuses new sessions from now on, because this process is about to end. */
  refuseNew(): void {
    this.#opener.refuseNew();
    this.#placement.refuseNew();
    this.#admission.drain();
  }

  /**
   * The SID of a client's session id, which the other methods take. An id from the service is a SID. An id that a client chose stands for a
   * different SID in each organisation (ADR 26).
   */
  sidOf(caller: Caller, id: string): string | Promise<string> {
    return this.#registry.sidOf(id, caller);
  }

  /** See {@link SessionOpener.reserve}. */
  reserve(caller: Caller, reservation: Reservation): Promise<string> {
    return this.#opener.reserve(caller, reservation);
  }

  /**
   * Waits until a reserved session has a slot of its environment; returns at once where nothing is limited. Errors as
   * {@link Admission.admit}. `create` does the same for a session that has no slot yet.
   */
  async admit(caller: Caller, sid: string, signal: AbortSignal, onPosition: (place: QueuePosition) => void): Promise<void> {
    const live = await this.#registry.find(sid, caller);
    if (live === null || live.record.versionId === null) return;
    await this.#admission.admit(live, await this.#registry.hosted(live), caller, signal, onPosition);
  }

  /** See {@link SessionOpener.create}. */
  create(caller: Caller, request: CreateRequest): Promise<void> {
    return this.#opener.create(caller, request);
  }

  /** See {@link SessionOpener.fork}. */
  fork(caller: Caller, request: ForkRequest): Promise<string> {
    return this.#opener.fork(caller, request);
  }

  /** The client of a `/create` did not receive the answer: an equal `/create` is that client again. */
  async markCreateUndelivered(sid: string): Promise<void> {
    await this.#options.store.markCreateUndelivered(sid).catch((error: unknown) => this.#options.onBackgroundError(error, sid));
  }

  /** The environment to which a session is pinned; null when the SID is unknown or not pinned yet. */
  async environmentOf(caller: Caller, sid: string): Promise<HostedEnvironment | null> {
    const live = await this.#registry.find(sid, caller);
    if (live === null || live.record.versionId === null) return null;
    live.lastSeenAt = live.lastRequestAt = this.#options.clock.now();
    live.hosted ??= await this.#options.directory.version(live.record.versionId);
    return live.hosted;
  }

  async prompt(caller: Caller, sid: string): Promise<MessageBlock[]> {
    const live = await this.#registry.requireOpen(sid, caller);
    return this.#withoutSecrets(
      live,
      this.#setup.runOnBackend(live, async (backend) => backend.prompt(live.signal)),
    );
  }

  async messages(caller: Caller, sid: string): Promise<Message[]> {
    const live = await this.#registry.requireOpen(sid, caller);
    return this.#withoutSecrets(
      live,
      this.#setup.runOnBackend(live, async (backend) => backend.messages(live.signal)),
    );
  }

  /** A request to an open episode that is no call and has no place in the ledger. Rejects with the errors of `ask`. */
  async ask<T>(caller: Caller, sid: string, ask: (backend: BackendSession, signal: AbortSignal) => Promise<T>): Promise<T> {
    const live = await this.#registry.requireOpen(sid, caller);
    const answer = this.#setup.runOnBackend(live, (backend) => ask(backend, live.signal));
    return this.#withoutSecretsInError(live, answer);
  }

  /** Does not wait for setup. */
  async taskTools(caller: Caller, sid: string): Promise<ToolsAnswer> {
    const live = await this.#registry.requireOpen(sid, caller);
    return this.#withoutSecrets(live, this.#setup.taskTools(live));
  }

  /** The answer of the environment, or its error, without the session's secrets. */
  async #withoutSecrets<T>(live: LiveSession, answer: Promise<T>): Promise<T> {
    return this.#registry.mask(live).hideIn((await this.#withoutSecretsInError(live, answer)) as JsonValue) as T;
  }

  async #withoutSecretsInError<T>(live: LiveSession, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw this.#registry.mask(live).hideInError(error);
    }
  }

  /**
   * Opens a call; see {@link CallRunner.open}. `taskId`: set to resume that call. `idempotencyKey`: repeats with the same key in the session
   * are the same call. `isNew`: the client knows that it repeats no earlier call.
   */
  async call(
    caller: Caller,
    sid: string,
    request: {
      tool: string;
      input: JsonObject;
      taskId: string | null;
      idempotencyKey?: string | null;
      isNew?: boolean;
      onProgress?: (progress: CallProgress) => void;
    },
  ): Promise<OpenCall> {
    const live = await this.#registry.requireOpen(sid, caller);
    const { idempotencyKey: key = null, isNew = false, onProgress } = request;
    const open = this.#calls.open(live, {
      kind: 'call',
      tool: request.tool,
      input: stringifyJson(request.input),
      taskId: request.taskId,
      keyedTaskId: key === null ? null : taskIdOfKey(sid, key),
      isNew,
      run: (backend, call) =>
        backend.call({ ...call, tool: request.tool, input: request.input, ...(onProgress && { onProgress }) }, live.signal),
    });
    return this.#withoutSecretsInError(live, open);
  }

  /** Runs a tool call whose client does not get the task id and so cannot resume it. Rejects as `call`. */
  callWithoutResume(caller: Caller, sid: string, tool: string, input: JsonObject): Promise<CallOutcome> {
    const live = this.#registry.openInMemory(sid, caller);
    return live !== null
      ? this.#callWithoutResume(live, tool, input)
      : this.#registry.requireOpen(sid, caller).then((found) => this.#callWithoutResume(found, tool, input));
  }

  #callWithoutResume(live: LiveSession, tool: string, input: JsonObject): Promise<CallOutcome> {
    const outcome = this.#calls.perform(live, {
      kind: 'call',
      tool,
      input: stringifyJson(input),
      taskId: null,
      // Key by key: a spread costs as much as the tool of a fast environment.
      run: (backend, { taskId, upstreamTaskId, mayHaveRun, onUpstreamTaskId }) =>
        backend.call({ tool, input, taskId, upstreamTaskId, mayHaveRun, onUpstreamTaskId }, live.signal),
    });
    const mask = this.#registry.mask(live);
    return mask.isEmpty
      ? outcome
      : outcome.catch((error: unknown) => {
          throw mask.hideInError(error);
        });
  }

  /** The call with this task id, running or ended; null when the session has no such call. */
  async resumeCall(caller: Caller, sid: string, taskId: string): Promise<OpenCall | null> {
    const live = await this.#registry.requireOpen(sid, caller);
    const record = await this.#options.ledger.find(taskId);
    if (record === null || record.sid !== sid || record.kind !== 'call') return null;
    const input = parseJson(this.#registry.mask(live).reveal(record.input)) as JsonObject;
    return this.call(caller, sid, { tool: record.tool, input, taskId });
  }

  /**
   * Passes one message of a client through to an environment whose server speaks the client's protocol; the JSON text of its one reply.
   * `action`: the call that the message makes, which is in the ledger and the trace like any other; null for a message that only reads.
   * Errors of the server are replies; errors of the service reject.
   */
  async exchange(caller: Caller, sid: string, message: NativeMessage, action: NativeAction | null): Promise<string> {
    return this.#exchanges.run(await this.#registry.requireOpen(sid, caller), message, action);
  }

  /** The state of the episode as an environment with a `native` backend reports it. Rejects with `environment_failed` when it reports none. */
  async nativeState(caller: Caller, sid: string): Promise<JsonObject> {
    return this.#exchanges.state(await this.#registry.requireOpen(sid, caller));
  }

  /** The outcomes of the session's calls whose tool ran to its end, in order. Reads all of them. */
  async endedCalls(caller: Caller, sid: string): Promise<CallOutcome[]> {
    const live = await this.#registry.requireOpen(sid, caller);
    await this.#options.ledger.drain();
    return (await this.#options.ledger.journal(live.record.sid)).flatMap(({ kind, outcome }) =>
      kind === 'call' && outcome !== null ? [outcome] : [],
    );
  }

  /** Comparative rewards for the trajectories of one task; changes nothing of the episode. */
  async scoreGroup(caller: Caller, sid: string, request: { candidates: GroupCandidate[]; taskId: string | null }): Promise<OpenCall> {
    const live = await this.#registry.requireOpen(sid, caller).catch((error: unknown) => {
      // The client takes 404 for "unsupported", so an unknown SID needs another status.
      throw error instanceof PalestraError && error.code === 'session_not_found' ? new PalestraError('session_deleted') : error;
    });
    const open = this.#calls.open(live, {
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
    return this.#withoutSecretsInError(live, open);
  }

  /** Keeps the session alive, also a failed one. */
  async ping(caller: Caller, sid: string): Promise<void> {
    const live = await this.#registry.requireOpen(sid, caller, 'ping');
    this.#reaper.pingUpstream(live);
  }

  /** Ends the session and runs its teardown. Idempotent; ignores unknown SIDs. */
  async delete(caller: Caller, sid: string): Promise<void> {
    const live = await this.#registry.find(sid, caller);
    if (live === null || isDead(live.record.state)) return;
    if (!(await this.#registry.advance(live, 'closed'))) return;
    this.#admission.onSlotFreed();
    // Read `ref` only now: the environment may have opened the episode while the end was being stored.
    if (live.record.ref !== null) await this.#teardown(live);
  }

  /** `ignoresErrors`: for lost sessions, whose server can usually not be reached. */
  async #teardown(live: LiveSession, ignoresErrors = false): Promise<void> {
    try {
      const backend = await this.#registry.backend(live);
      await backend.delete(AbortSignal.timeout(TEARDOWN_DEADLINE_MS));
    } catch (error) {
      if (!ignoresErrors) this.#options.onBackgroundError(error, live.record.sid);
    }
  }
}
