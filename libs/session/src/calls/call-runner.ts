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
import { type CallEnd, CallPerformer, type CallWork, type ToolRun } from './call-performer.ts';
import { type CallStream, type OpenCall, unknownCall, unknownOutcome, settledCall } from './open-call.ts';

export interface CallRequest extends ToolRun {
  kind: 'call' | 'score_group';
  /** JSON text */
  input: string;
  /** Set by a client that resumes an earlier call; null = a new one. */
  taskId: string | null;
  /** The task id of a call that its client has named: with it the call begins, or is resumed where it has begun. */
  named?: string | null;
  /** Its client knows that it repeats no call that another process served. */
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

/** So long a call waits for setup before its stream opens; a setup that fails until then is an HTTP error, later an SSE one. */
const SETUP_HOLD_MS = 20_000;
const POLL_MS = 250;
const UNSTORED_KEEP_MS = 600_000;
/** A process that ended a call this shortly before its last sign of life may have died before the client read the end. */
const LAST_WORDS_MS = 1_500;
const MAX_DOUBTS = 5;
const UPSTREAM_ID_DELAY_MS = 5;
/** So long after the ledger said that a session is ours it is taken to be, unless its heartbeat says otherwise: another process may end it meanwhile. */
const TRUST_MS = 5_000;

/**
 * Runs each call once. Its intent is in the ledger before the tool runs; whoever comes with its task id, here or on another
 * process, now or after a restart, joins the running call or gets the stored outcome.
 */
export class CallRunner {
  readonly #running = new Map<string, { sid: string; request: CallRequest; call: OpenCall }>();
  readonly #streams = new Map<string, { open: number; delivered: boolean }>();
  /** Named calls whose intent is on its way. */
  readonly #opening = new SingleFlight<OpenCall>();
  readonly #performer: CallPerformer;
  /** Deferred calls that run. */
  #performing = 0;
  #onIdle: (() => void) | null = null;

  constructor(
    readonly registry: SessionRegistry,
    readonly setup: SetupGate,
    readonly restorer: Restorer,
    readonly options: CallRunnerOptions,
  ) {
    const { clock, observer, onBackgroundError } = options;
    const onUpstream = (live: LiveSession, taskId: string, upstream: string) => this.#noteUpstream(live, taskId, upstream);
    this.#performer = new CallPerformer(registry, setup, restorer, { clock, observer, onBackgroundError, onUpstream });
  }

  /** Runs a call whose client never hears of its task id, and cannot come back for it. Rejects as `open` does. */
  perform(live: LiveSession, request: CallRequest): Promise<CallOutcome> {
    if (this.#mayDefer(live)) {
      const intent = this.#intentOf(live, request, newOrderedTaskId(this.options.clock.now()));
      const deferred = this.options.ledger.defer(intent);
      if (deferred !== null) return this.#performDeferred(live, request, intent, deferred);
    }
    return this.#open(live, request, newTaskId()).then((call) => call.outcome());
  }

  async #performDeferred(live: LiveSession, request: CallRequest, intent: CallIntent, deferred: DeferredCall): Promise<CallOutcome> {
    this.#performing += 1;
    try {
      const result = await this.#performer.perform(live, request, intent, { taskId: intent.taskId, upstreamTaskId: null });
      deferred.end(result);
      this.#noteEnd(live, result.outcome);
      return result.outcome;
    } finally {
      this.#performing -= 1;
      if (this.#performing === 0) this.#onIdle?.();
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
   * Answers once the intent is stored (and setup is done, or has taken long); the tool runs when `outcome` is asked. A request
   * without a task id that equals a call whose stream broke is that call (docs/adr/0007), unless its client has named it.
   */
  async open(live: LiveSession, request: CallRequest): Promise<OpenCall> {
    if (request.taskId !== null) return this.#resumeById(live, request, request.taskId);
    const { named = null } = request;
    if (named === null) return this.#open(live, request, newTaskId());
    const running = this.#running.get(named);
    if (running === undefined) return this.#opening.do(named, () => this.#open(live, request, named));
    if (running.request.tool !== request.tool || running.request.input !== request.input) throw nameTaken();
    return running.call;
  }

  async #open(live: LiveSession, request: CallRequest, taskId: string): Promise<OpenCall> {
    if (!this.setup.isOpen(live)) await this.#holdForSetup(live);
    const named = taskId === request.named;
    const intent: CallIntent = { ...this.#intentOf(live, request, taskId), ...(named && { named }) };
    const begin = () =>
      this.#track(live, request, intent.taskId, () => this.#run(live, request, intent, { taskId: intent.taskId, upstreamTaskId: null }));
    let sure = request.isNew === true;
    for (let doubts = 0; doubts < MAX_DOUBTS; doubts += 1) {
      const answer = await this.options.ledger.intent(intent, sure);
      switch (answer.verdict) {
        case 'begun':
          live.confirmedAt = this.options.clock.now();
          return begin();
        case 'join':
          return this.#resume(live, request, answer.taskId);
        case 'known':
          return this.#resumeNamed(live, request, intent);
        case 'moved':
          throw await this.#moved(live);
        case 'doubt':
          if (await this.#brokeWithItsProcess(answer)) return this.#resume(live, request, answer.taskId);
          sure = true;
      }
    }
    throw new PalestraError('session_moved');
  }

  /** Whether the row of a call that no client can resume may be written after the call ran (docs/adr/0002). */
  #mayDefer(live: LiveSession): boolean {
    return live.hosted !== null && !isAwaited(live) && this.setup.isOpen(live) && this.options.clock.now() - live.confirmedAt < TRUST_MS;
  }

  /** Why the ledger takes no more calls of this session from us. */
  async #moved(live: LiveSession): Promise<PalestraError> {
    await this.registry.refresh(live);
    if (isDead(live.record.state)) return deathError(live.record, this.options.clock.now());
    return new PalestraError('session_moved');
  }

  /** Whether the client of an equal call that another process served lost its stream when that process died. */
  async #brokeWithItsProcess({ taskId, replicaId }: { taskId: string; replicaId: string }): Promise<boolean> {
    const { leases, ledger } = this.options;
    const owner = await leases.confirm(replicaId);
    // A living process has noted by now whatever stream broke on it.
    if (owner.alive) return false;
    const call = await ledger.find(taskId);
    if (call === null) return false;
    if (call.outcome === null) return true;
    const lastWords = owner.lastSeenAt !== null && call.endedAt !== null && call.endedAt > owner.lastSeenAt - LAST_WORDS_MS;
    return lastWords && ledger.takeOver(taskId, replicaId, this.options.replicaId);
  }

  /** Waits until no call runs, `graceMs` at most, then until the ledger holds everything. */
  async drain(graceMs: number): Promise<void> {
    const ends = [...this.#running.values()].map(({ call }) => call.outcome());
    const deadline = new AbortController();
    const idle = new Promise<void>((resolve) => {
      if (this.#performing === 0) resolve();
      else this.#onIdle = resolve;
    });
    await Promise.race([Promise.all([idle, ...ends]), this.options.clock.sleep(graceMs, deadline.signal).catch(() => {})]);
    deadline.abort();
    await this.options.ledger.drain();
  }

  async #holdForSetup(live: LiveSession): Promise<void> {
    const patience = new AbortController();
    const setup = this.setup.wait(live);
    // Whoever runs the call meets the failure again; here it must not count as unhandled.
    setup.catch(() => {});
    await Promise.race([setup, this.options.clock.sleep(SETUP_HOLD_MS, patience.signal).catch(() => {})]);
    patience.abort();
  }

  /** `begun`: on another process. */
  #track(live: LiveSession, request: CallRequest, taskId: string, run: () => Promise<CallOutcome>, begun = false): OpenCall {
    const { sid } = live.record;
    let running: Promise<CallOutcome> | null = null;
    const call: OpenCall = {
      taskId,
      outcome: () => (running ??= run()),
      abandon: () => {
        if (running !== null) return;
        // What runs elsewhere is not ours to end.
        if (begun) return void this.#running.delete(taskId);
        // Its client knows it, and will ask, or asks already, what became of it.
        if (request.named === taskId) return void call.outcome();
        const outcome = outcomeOfError(new PalestraError('call_abandoned'));
        const end = { outcome, failureClass: classifyOutcome(outcome), endedAt: this.options.clock.now() };
        running = this.#finish(live, taskId, end);
      },
      stream: () => this.#stream(live, request, taskId),
    };
    this.#running.set(taskId, { sid, request, call });
    return call;
  }

  /** One call has as many streams as clients that came for it; when the last one broke and none was read to its end, it is broken. */
  #stream(live: LiveSession, { named }: CallRequest, taskId: string): CallStream {
    // Its client comes back by the name: nothing that equals it is a repeat of it.
    if (named === taskId) return { delivered: () => {}, broke: () => {} };
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
      broke: () => {
        end();
        if (streams.open > 0 || streams.delivered) return;
        this.options.ledger.broken(taskId).catch((error: unknown) => this.options.onBackgroundError(error, live.record.sid));
      },
    };
  }

  async #run(live: LiveSession, request: CallRequest, intent: CallIntent, work: CallWork): Promise<CallOutcome> {
    return this.#finish(live, work.taskId, await this.#performer.perform(live, request, intent, work));
  }

  /**
   * The client gets its outcome at once; that it reached the ledger is waited for by `drain`. Not so in a session that may be
   * replayed, or is recorded: there no client may know a result that the journal could lose.
   */
  async #finish(live: LiveSession, taskId: string, end: CallEnd): Promise<CallOutcome> {
    const { outcome } = end;
    const background = (error: unknown) => this.options.onBackgroundError(error, live.record.sid);
    const awaited = isAwaited(live);
    const stored = this.options.ledger.result({ taskId, ...end }, awaited || outcome.type !== 'result').then(
      () => void this.#running.delete(taskId),
      (error: unknown) => {
        background(error);
        // Not in the ledger: whoever resumes soon must still find it here.
        this.options.clock.after(UNSTORED_KEEP_MS, () => this.#running.delete(taskId));
      },
    );
    this.#noteEnd(live, outcome);
    if (awaited) await stored;
    return outcome;
  }

  /** Whether the episode ended with it. */
  #noteEnd(live: LiveSession, outcome: CallOutcome): void {
    if (outcome.type !== 'result' || !outcome.finished || live.record.state === 'finished') return;
    this.registry.advance(live, 'finished').catch((error: unknown) => this.options.onBackgroundError(error, live.record.sid));
  }

  /** Most calls end a moment after they were given an id: then nobody needs it any more. */
  #noteUpstream(live: LiveSession, taskId: string, upstreamTaskId: string): void {
    this.options.clock.after(UPSTREAM_ID_DELAY_MS, () => {
      if (this.#running.has(taskId)) this.#storeUpstream(live, taskId, upstreamTaskId);
    });
  }

  #storeUpstream(live: LiveSession, taskId: string, upstreamTaskId: string): void {
    this.options.ledger.upstream(taskId, upstreamTaskId).catch((error: unknown) => this.options.onBackgroundError(error, live.record.sid));
  }

  /** A client that names its call is not the one that a mark on it waits for any more: its next equal call is a new one. */
  async #resumeById(live: LiveSession, request: CallRequest, taskId: string): Promise<OpenCall> {
    const call = await this.#resume(live, request, taskId);
    const background = (error: unknown) => this.options.onBackgroundError(error, live.record.sid);
    if (call.taskId !== null) await this.options.ledger.resumed(call.taskId).catch(background);
    return call;
  }

  /** An id stands for one call: with another tool or input it is the client's mistake, not a repeat. */
  async #resumeNamed(live: LiveSession, request: CallRequest, { taskId, tool, input }: CallIntent): Promise<OpenCall> {
    const record = await this.options.ledger.find(taskId);
    if (record !== null && (record.tool !== tool || record.input !== input)) throw nameTaken();
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

  /** The outcome of a call that another process began: waits for it, or goes on with it when that process is dead. */
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
   * Goes on with a dead process's call. Its environment's server may know it by an id; else it runs again only in a session that was
   * restored to the moment before, or when that does no harm, and its outcome is unknown otherwise.
   */
  async #takeOver(live: LiveSession, request: CallRequest, record: CallRecord): Promise<CallOutcome> {
    const { policy } = await this.registry.hosted(live);
    const { taskId, upstreamTaskId } = record;
    let mayHaveRun = upstreamTaskId === null && request.kind === 'call' && !policy.idempotentTools.includes(record.tool);
    if (mayHaveRun && policy.deterministic) {
      // Its server may still be running it: only an episode without that call may get it again.
      if (this.setup.isOpen(live)) await this.restorer.restore(live);
      mayHaveRun = false;
    }
    return this.#run(live, request, record, { taskId, upstreamTaskId, mayHaveRun });
  }
}

/** Results of a session that may be replayed, or is recorded, are waited for. */
const isAwaited = ({ hosted, record }: LiveSession): boolean => hosted?.policy.deterministic === true || record.recording !== null;

const nameTaken = (): PalestraError =>
  new PalestraError('invalid_request', { detail: 'The id of this call was given to another call of the session before.' });
