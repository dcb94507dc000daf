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
import { Admission, type QueuePlace } from './admission/admission.ts';
import { type CreateRequest, type ForkRequest, type Reservation, SessionOpener } from './admission/session-opener.ts';
import { CallRunner } from './calls/call-runner.ts';
import { Exchanges } from './calls/exchanges.ts';
import { namedTaskId } from './calls/named-call.ts';
import type { OpenCall } from './calls/open-call.ts';
import { type Place, Placement } from './lifecycle/placement.ts';
import { SessionReaper } from './lifecycle/reaper.ts';
import { Restorer } from './lifecycle/restorer.ts';
import { SetupGate } from './lifecycle/setup-gate.ts';
import type { AdmissionStore } from './ports/admission-store.port.ts';
import type { CallProgress } from './ports/backend-call.ts';
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
  /** Clients that may wait for slots of one environment, and how long, milliseconds. */
  queue: { limit: number; patienceMs: number };
  /** Told of failures that no client waits for (teardown, a late write). */
  onBackgroundError: (error: unknown, sid: string) => void;
}

const TEARDOWN_DEADLINE_MS = 60_000;

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
    this.#reaper = new SessionReaper(this.#registry, options, (live, quietly) => this.#teardown(live, quietly));
    this.#setup = new SetupGate(this.#registry, this.#restorer, options, (live) => this.#reaper.forsake(live));
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
   * Where the session's requests are to be served: here, or by the process at an address. Takes a session over whose owner died,
   * when it can be restored.
   */
  async place(caller: Caller, given: string): Promise<Place> {
    return this.#placement.of(caller, await this.sidOf(caller, given));
  }

  /** The session is not where `place` said: reads it again. */
  async relocate(caller: Caller, given: string): Promise<void> {
    await this.#placement.refresh(caller, await this.sidOf(caller, given));
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
    this.#opener.refuseNew();
    this.#placement.refuseNew();
    this.#admission.drain();
  }

  /**
   * The SID that a client's session id stands for, as every other method takes it. Ids that the service gave out stand for themselves;
   * one that a client chose stands for another SID in each organisation.
   */
  sidOf(caller: Caller, given: string): string | Promise<string> {
    return this.#registry.sidOf(given, caller);
  }

  /** See {@link SessionOpener.reserve}. */
  reserve(caller: Caller, reservation: Reservation): Promise<string> {
    return this.#opener.reserve(caller, reservation);
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

  /** See {@link SessionOpener.create}. */
  create(caller: Caller, request: CreateRequest): Promise<void> {
    return this.#opener.create(caller, request);
  }

  /** See {@link SessionOpener.fork}. */
  fork(caller: Caller, request: ForkRequest): Promise<string> {
    return this.#opener.fork(caller, request);
  }

  /** The answer of a `/create` broke before its client had read it. */
  async noteCreateBroken(sid: string): Promise<void> {
    await this.#options.store.noteCreateBroken(sid).catch((error: unknown) => this.#options.onBackgroundError(error, sid));
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
    return this.#registry.mask(live).hideIn((await this.#hiddenError(live, answer)) as JsonValue) as T;
  }

  async #hiddenError<T>(live: LiveSession, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw this.#registry.mask(live).hideInError(error);
    }
  }

  /**
   * See {@link CallRunner.open}. `taskId` is set by a client that resumes. `name`: what a
   * client that will repeat itself calls the call; the same name in the session, the same call. `isNew`: no repeat of an earlier call.
   */
  async call(
    caller: Caller,
    sid: string,
    request: {
      tool: string;
      input: JsonObject;
      taskId: string | null;
      name?: string | null;
      isNew?: boolean;
      onProgress?: (progress: CallProgress) => void;
    },
  ): Promise<OpenCall> {
    const live = await this.#registry.bound(sid, caller);
    const { name = null, isNew = false, onProgress } = request;
    const open = this.#calls.open(live, {
      kind: 'call',
      tool: request.tool,
      input: stringifyJson(request.input),
      taskId: request.taskId,
      named: name === null ? null : namedTaskId(sid, name),
      isNew,
      run: (backend, call) =>
        backend.call({ ...call, tool: request.tool, input: request.input, ...(onProgress && { onProgress }) }, live.signal),
    });
    return this.#hiddenError(live, open);
  }

  /** A tool call whose client never hears of its task id, and so cannot come back for it. Rejects as `call` does, or answers how it ended. */
  act(caller: Caller, sid: string, tool: string, input: JsonObject): Promise<CallOutcome> {
    const live = this.#registry.known(sid, caller);
    return live !== null ? this.#act(live, tool, input) : this.#registry.bound(sid, caller).then((found) => this.#act(found, tool, input));
  }

  #act(live: LiveSession, tool: string, input: JsonObject): Promise<CallOutcome> {
    const outcome = this.#calls.perform(live, {
      kind: 'call',
      tool,
      input: stringifyJson(input),
      taskId: null,
      // Key by key: a spread costs as much as the tool of a light environment.
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

  /** A call whose client knows nothing of it but its task id: the running one, or its outcome; null where the session has none of that id. */
  async callAgain(caller: Caller, sid: string, taskId: string): Promise<OpenCall | null> {
    const live = await this.#registry.bound(sid, caller);
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
    return this.#exchanges.run(await this.#registry.bound(sid, caller), message, action);
  }

  /** The state of the episode as an environment with a `native` backend reports it. Rejects with `environment_failed` when it reports none. */
  async nativeState(caller: Caller, sid: string): Promise<JsonObject> {
    return this.#exchanges.state(await this.#registry.bound(sid, caller));
  }

  /** What became of the session's calls whose tool ran to an end, in order. Reads all of them: for whoever takes a session over. */
  async endedCalls(caller: Caller, sid: string): Promise<CallOutcome[]> {
    const live = await this.#registry.bound(sid, caller);
    await this.#options.ledger.drain();
    return (await this.#options.ledger.journal(live.record.sid)).flatMap(({ kind, outcome }) =>
      kind === 'call' && outcome !== null ? [outcome] : [],
    );
  }

  /** Comparative rewards for the trajectories of one task; changes nothing of the episode. */
  async scoreGroup(caller: Caller, sid: string, request: { candidates: GroupCandidate[]; taskId: string | null }): Promise<OpenCall> {
    const live = await this.#registry.bound(sid, caller).catch((error: unknown) => {
      // 404 tells the client "unsupported"; a SID that nobody knows must not.
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
    return this.#hiddenError(live, open);
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
    if (!(await this.#registry.advance(live, 'closed'))) return;
    this.#admission.kick();
    // As it is now: its environment may have opened while the end was on its way.
    if (live.record.ref !== null) await this.#teardown(live);
  }

  /** `quietly`: what is lost most often cannot be reached. */
  async #teardown(live: LiveSession, quietly = false): Promise<void> {
    try {
      const backend = await this.#registry.backend(live);
      await backend.delete(AbortSignal.timeout(TEARDOWN_DEADLINE_MS));
    } catch (error) {
      if (!quietly) this.#options.onBackgroundError(error, live.record.sid);
    }
  }
}
