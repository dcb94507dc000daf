import { type Clock, newTaskId, newOrderedTaskId, SingleFlight } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import type { Restorer } from '../lifecycle/restorer.ts';
import type { SetupGate } from '../lifecycle/setup-gate.ts';
import type { CallIntent, CallLedger, CallOutcome, CallRecord, DeferredCall, ReplicaLeases } from '../ports/call-ledger.port.ts';
import type { SessionObserver } from '../ports/observer.port.ts';
import { classifyOutcome, outcomeOfError } from '../registry/failure.ts';
import { deathError, type LiveSession } from '../registry/live-session.ts';
import type { SessionRegistry } from '../registry/session-registry.ts';
import { isDead } from '../state.ts';
import { type CallEnd, CallPerformer, type CallAttempt, type ToolRun } from './call-performer.ts';
import { type CallStream, type OpenCall, unknownCall, unknownOutcome, settledCall } from './open-call.ts';

export interface CallRequest extends ToolRun {
  kind: 'call' | 'score_group';
  /** JSON text */
  input: string;
  /** Resumes the call with this id; null for a new call. */
  taskId: string | null;
  /** The task id that belongs to the client's idempotency key. A call with this id is begun, or resumed if it exists. */
  keyedTaskId?: string | null;
  /** The client knows that it repeats no call that another process served. */
  isNew?: boolean;
}

export interface CallRunnerOptions {
  ledger: CallLedger;
  leases: ReplicaLeases;
  clock: Clock;
  replicaId: string;
  observer: SessionObserver;
  onBackgroundError: (error: unknown, sid: string) => void;
}

/** How long a call waits for setup before its stream opens. A setup that fails earlier is an HTTP error, later an SSE error. */
const SETUP_HOLD_MS = 20_000;
const POLL_MS = 250;
/** How long the outcome of a call that could not be stored stays in memory. */
const UNSTORED_KEEP_MS = 600_000;
/** A process that ended a call less than this before its last heartbeat may have died before the client received the end. */
const MAYBE_UNDELIVERED_MS = 1_500;
const MAX_UNCERTAIN_ANSWERS = 5;
/** Ids of calls that end within this time are not stored. */
const UPSTREAM_ID_DELAY_MS = 5;
/** How long we trust a ledger answer that this process owns the session. The heartbeat can invalidate it earlier. */
const OWNERSHIP_TRUST_MS = 5_000;

/**
 * Runs each call once. The intent is in the ledger before the tool runs. A request with the task id, on any process, now or after a restart,
 * joins the running call or gets the stored outcome. A request can refer to an earlier call in four ways:
 * - by its task id (`#resumeById`);
 * - by its idempotency key (`#resumeByKey`), from which the task id follows;
 * - by being equal to a call whose client did not receive the end (`join`, ADR 7);
 * - by being equal to a call that another process began a moment ago (`uncertain`), if that process died.
 */
export class CallRunner {
  /** Calls whose outcome is not stored yet, by task id. */
  readonly #running = new Map<string, { sid: string; request: CallRequest; call: OpenCall }>();
  readonly #streams = new Map<string, { open: number; delivered: boolean }>();
  /** Calls with an idempotency key whose intent is being stored. */
  readonly #opening = new SingleFlight<OpenCall>();
  readonly #performer: CallPerformer;
  /** How many deferred calls run. */
  #runningDeferred = 0;
  #onIdle: (() => void) | null = null;

  constructor(
    readonly registry: SessionRegistry,
    readonly setup: SetupGate,
    readonly restorer: Restorer,
    readonly options: CallRunnerOptions,
  ) {
    const { clock, observer, onBackgroundError } = options;
    const onUpstream = (live: LiveSession, taskId: string, upstream: string) => this.#onUpstreamId(live, taskId, upstream);
    this.#performer = new CallPerformer(registry, setup, restorer, { clock, observer, onBackgroundError, onUpstream });
  }

  /** Runs a call whose client does not get the task id and so cannot resume it. Rejects as `open`. */
  perform(live: LiveSession, request: CallRequest): Promise<CallOutcome> {
    if (this.#mayDefer(live)) {
      const intent = this.#intentOf(live, request, newOrderedTaskId(this.options.clock.now()));
      const deferred = this.options.ledger.defer(intent);
      if (deferred !== null) return this.#performDeferred(live, request, intent, deferred);
    }
    return this.#open(live, request, newTaskId()).then((call) => call.outcome());
  }

  async #performDeferred(live: LiveSession, request: CallRequest, intent: CallIntent, deferred: DeferredCall): Promise<CallOutcome> {
    this.#runningDeferred += 1;
    try {
      const result = await this.#performer.perform(live, request, intent, { taskId: intent.taskId, upstreamTaskId: null });
      deferred.end(result);
      this.#finishEpisode(live, result.outcome);
      return result.outcome;
    } finally {
      this.#runningDeferred -= 1;
      if (this.#runningDeferred === 0) this.#onIdle?.();
    }
  }

  #intentOf(live: LiveSession, request: CallRequest, taskId: string): CallIntent {
    return {
      taskId,
      sid: live.record.sid,
      kind: request.kind,
      tool: request.tool,
      input: this.registry.mask(live).hide(request.input),
      replicaId: this.options.replicaId,
      startedAt: this.options.clock.now(),
    };
  }

  /**
   * Resolves when the intent is stored, and setup is done or has taken 20 s. The tool runs when `outcome` is called. Throws `session_moved`
   * when another process owns the session, the error of a dead session, and `invalid_request` for a reused idempotency key.
   */
  async open(live: LiveSession, request: CallRequest): Promise<OpenCall> {
    if (request.taskId !== null) return this.#resumeById(live, request, request.taskId);
    const { keyedTaskId = null } = request;
    if (keyedTaskId === null) return this.#open(live, request, newTaskId());
    const running = this.#running.get(keyedTaskId);
    if (running === undefined) return this.#opening.do(keyedTaskId, () => this.#open(live, request, keyedTaskId));
    if (running.request.tool !== request.tool || running.request.input !== request.input) throw keyReused();
    return running.call;
  }

  async #open(live: LiveSession, request: CallRequest, taskId: string): Promise<OpenCall> {
    if (!this.setup.isDone(live)) await this.#holdForSetup(live);
    const hasClientKey = taskId === request.keyedTaskId;
    const intent: CallIntent = { ...this.#intentOf(live, request, taskId), ...(hasClientKey && { hasClientKey }) };
    const start = () =>
      this.#track(live, request, intent.taskId, () => this.#run(live, request, intent, { taskId: intent.taskId, upstreamTaskId: null }));
    let isNew = request.isNew === true;
    for (let attempt = 0; attempt < MAX_UNCERTAIN_ANSWERS; attempt += 1) {
      const answer = await this.options.ledger.begin(intent, isNew);
      switch (answer.verdict) {
        case 'started':
          live.ownershipConfirmedAt = this.options.clock.now();
          return start();
        case 'join':
          return this.#resume(live, request, answer.taskId);
        case 'repeated':
          return this.#resumeByKey(live, request, intent);
        case 'moved':
          throw await this.#whyMoved(live);
        case 'uncertain':
          if (await this.#isUndeliveredByDeadProcess(answer)) return this.#resume(live, request, answer.taskId);
          isNew = true;
      }
    }
    throw new PalestraError('session_moved');
  }

  /** Whether the row of a call that no client can resume may be written after the call ran (docs/adr/0002). */
  #mayDefer(live: LiveSession): boolean {
    return (
      live.hosted !== null &&
      !awaitsStorage(live) &&
      this.setup.isDone(live) &&
      this.options.clock.now() - live.ownershipConfirmedAt < OWNERSHIP_TRUST_MS
    );
  }

  /** The reason why the ledger takes no calls of this session from this process. */
  async #whyMoved(live: LiveSession): Promise<PalestraError> {
    await this.registry.refresh(live);
    if (isDead(live.record.state)) return deathError(live.record, this.options.clock.now());
    return new PalestraError('session_moved');
  }

  /** Whether an equal call ran on a process that died before the client received the end. */
  async #isUndeliveredByDeadProcess({ taskId, replicaId }: { taskId: string; replicaId: string }): Promise<boolean> {
    const { leases, ledger } = this.options;
    const owner = await leases.confirm(replicaId);
    // A living process has stored by now which clients did not receive the end.
    if (owner.alive) return false;
    const call = await ledger.find(taskId);
    if (call === null) return false;
    if (call.outcome === null) return true;
    const maybeUndelivered = owner.lastSeenAt !== null && call.endedAt !== null && call.endedAt > owner.lastSeenAt - MAYBE_UNDELIVERED_MS;
    return maybeUndelivered && ledger.takeOver(taskId, replicaId, this.options.replicaId);
  }

  /** Waits until no call runs, at most `graceMs`, then until the ledger has stored everything. */
  async drain(graceMs: number): Promise<void> {
    const ends = [...this.#running.values()].map(({ call }) => call.outcome());
    const deadline = new AbortController();
    const idle = new Promise<void>((resolve) => {
      if (this.#runningDeferred === 0) resolve();
      else this.#onIdle = resolve;
    });
    await Promise.race([Promise.all([idle, ...ends]), this.options.clock.sleep(graceMs, deadline.signal).catch(() => {})]);
    deadline.abort();
    await this.options.ledger.drain();
  }

  async #holdForSetup(live: LiveSession): Promise<void> {
    const patience = new AbortController();
    const setup = this.setup.wait(live);
    // The call itself gets this failure again. Here it must not count as an unhandled rejection.
    setup.catch(() => {});
    await Promise.race([setup, this.options.clock.sleep(SETUP_HOLD_MS, patience.signal).catch(() => {})]);
    patience.abort();
  }

  /** `isElsewhere`: another process began the call. */
  #track(live: LiveSession, request: CallRequest, taskId: string, run: () => Promise<CallOutcome>, isElsewhere = false): OpenCall {
    const { sid } = live.record;
    let running: Promise<CallOutcome> | null = null;
    const call: OpenCall = {
      taskId,
      outcome: () => (running ??= run()),
      abandon: () => {
        if (running !== null) return;
        // The other process runs the call on.
        if (isElsewhere) return void this.#running.delete(taskId);
        // The client has the key and will ask for the outcome.
        if (request.keyedTaskId === taskId) return void call.outcome();
        const outcome = outcomeOfError(new PalestraError('call_abandoned'));
        const end = { outcome, failureClass: classifyOutcome(outcome), endedAt: this.options.clock.now() };
        running = this.#finish(live, taskId, end);
      },
      stream: () => this.#stream(live, request, taskId),
    };
    this.#running.set(taskId, { sid, request, call });
    return call;
  }

  /** A call has one stream per client. If the last stream ends and no client has received the end, the call is marked as undelivered. */
  #stream(live: LiveSession, { keyedTaskId }: CallRequest, taskId: string): CallStream {
    // The client asks again with its key, so an equal call is never a repeat.
    if (keyedTaskId === taskId) return { delivered: () => {}, undelivered: () => {} };
    const streams = this.#streams.get(taskId) ?? { open: 0, delivered: false };
    this.#streams.set(taskId, streams);
    streams.open += 1;
    const end = () => {
      streams.open -= 1;
      if (streams.open === 0) this.#streams.delete(taskId);
    };
    return {
      delivered: () => {
        streams.delivered = true;
        end();
      },
      undelivered: () => {
        end();
        if (streams.open > 0 || streams.delivered) return;
        this.options.ledger.markUndelivered(taskId).catch((error: unknown) => this.options.onBackgroundError(error, live.record.sid));
      },
    };
  }

  async #run(live: LiveSession, request: CallRequest, intent: CallIntent, attempt: CallAttempt): Promise<CallOutcome> {
    return this.#finish(live, attempt.taskId, await this.#performer.perform(live, request, intent, attempt));
  }

  /**
   * The client gets the outcome at once, before it is stored; `drain` waits for that. In a session that may be replayed or is recorded, the
   * client waits, because it must not see a result that the ledger could lose.
   */
  async #finish(live: LiveSession, taskId: string, end: CallEnd): Promise<CallOutcome> {
    const { outcome } = end;
    const background = (error: unknown) => this.options.onBackgroundError(error, live.record.sid);
    const waits = awaitsStorage(live);
    const stored = this.options.ledger.result({ taskId, ...end }, waits || outcome.type !== 'result').then(
      () => void this.#running.delete(taskId),
      (error: unknown) => {
        background(error);
        // A client that resumes soon must still find the outcome here.
        this.options.clock.after(UNSTORED_KEEP_MS, () => this.#running.delete(taskId));
      },
    );
    this.#finishEpisode(live, outcome);
    if (waits) await stored;
    return outcome;
  }

  /** Takes the session to `finished` if the outcome ended the episode. */
  #finishEpisode(live: LiveSession, outcome: CallOutcome): void {
    if (outcome.type !== 'result' || !outcome.finished || live.record.state === 'finished') return;
    this.registry.advance(live, 'finished').catch((error: unknown) => this.options.onBackgroundError(error, live.record.sid));
  }

  /** Stores the upstream id with a delay, because most calls end a moment later and then no longer need it. */
  #onUpstreamId(live: LiveSession, taskId: string, upstreamTaskId: string): void {
    this.options.clock.after(UPSTREAM_ID_DELAY_MS, () => {
      if (this.#running.has(taskId)) this.#storeUpstream(live, taskId, upstreamTaskId);
    });
  }

  #storeUpstream(live: LiveSession, taskId: string, upstreamTaskId: string): void {
    this.options.ledger.upstream(taskId, upstreamTaskId).catch((error: unknown) => this.options.onBackgroundError(error, live.record.sid));
  }

  /** Removes the mark of an undelivered call, because its client has returned: its next equal call is a new one. */
  async #resumeById(live: LiveSession, request: CallRequest, taskId: string): Promise<OpenCall> {
    const call = await this.#resume(live, request, taskId);
    const background = (error: unknown) => this.options.onBackgroundError(error, live.record.sid);
    if (call.taskId !== null) await this.options.ledger.clearUndelivered(call.taskId).catch(background);
    return call;
  }

  /** Throws `invalid_request` when the key belongs to a call with another tool or input. */
  async #resumeByKey(live: LiveSession, request: CallRequest, { taskId, tool, input }: CallIntent): Promise<OpenCall> {
    const record = await this.options.ledger.find(taskId);
    if (record !== null && (record.tool !== tool || record.input !== input)) throw keyReused();
    return this.#resume(live, request, taskId);
  }

  async #resume(live: LiveSession, request: CallRequest, taskId: string): Promise<OpenCall> {
    const here = this.#running.get(taskId);
    if (here !== undefined) return here.sid === live.record.sid ? here.call : unknownCall();
    const record = await this.options.ledger.find(taskId);
    if (record === null || record.sid !== live.record.sid || record.kind !== request.kind) return unknownCall();
    if (record.outcome !== null) return { ...settledCall(taskId, record.outcome), stream: () => this.#stream(live, request, taskId) };
    const follow = () => this.#follow(live, request, record).finally(() => this.#running.delete(taskId));
    return this.#running.get(taskId)?.call ?? this.#track(live, request, taskId, follow, true);
  }

  /** The outcome of a call that another process began. Waits for it, or takes the call over when that process is dead. */
  async #follow(live: LiveSession, request: CallRequest, begun: CallRecord): Promise<CallOutcome> {
    const { ledger, leases, clock, replicaId } = this.options;
    try {
      for (let record: CallRecord | null = begun; record !== null; record = await ledger.find(begun.taskId)) {
        if (record.outcome !== null) return record.outcome;
        const ownerAlive = record.replicaId !== replicaId && (await leases.isAlive(record.replicaId));
        if (!ownerAlive && (await ledger.takeOver(record.taskId, record.replicaId, replicaId))) {
          const ours = await ledger.find(record.taskId);
          return ours?.outcome ?? (await this.#takeOver(live, request, record));
        }
        await clock.sleep(POLL_MS, live.signal);
      }
      return unknownOutcome;
    } catch (error) {
      return outcomeOfError(error);
    }
  }

  /**
   * Continues a call of a dead process. If the environment's server gave it an id, the backend resumes it. Otherwise it runs again only if
   * the session is restored to the moment before it, or if the tool is idempotent; else its outcome is unknown.
   */
  async #takeOver(live: LiveSession, request: CallRequest, record: CallRecord): Promise<CallOutcome> {
    const { policy } = await this.registry.hosted(live);
    const { taskId, upstreamTaskId } = record;
    let mayHaveRun = upstreamTaskId === null && request.kind === 'call' && !policy.idempotentTools.includes(record.tool);
    if (mayHaveRun && policy.deterministic) {
      // The server may still be running it: only an episode without that call may run it again.
      if (this.setup.isDone(live)) await this.restorer.restore(live);
      mayHaveRun = false;
    }
    return this.#run(live, request, record, { taskId, upstreamTaskId, mayHaveRun });
  }
}

/** Whether results must be stored before the client gets them: in sessions that may be replayed or are recorded. */
const awaitsStorage = ({ hosted, record }: LiveSession): boolean => hosted?.policy.deterministic === true || record.recording !== null;

const keyReused = (): PalestraError =>
  new PalestraError('invalid_request', { detail: 'The id of this call was given to another call of the session before.' });
