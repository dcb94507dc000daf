import { type Clock, newTaskId } from '@palestra/kit';
import { PalestraError, type ToolErrorReason } from '@palestra/protocol';
import { abortable } from './abortable.ts';
import type { BackendCall, BackendSession } from './backend.port.ts';
import type { CallLedger, CallOutcome, CallRecord, ReplicaLeases } from './call-ledger.port.ts';
import { classifyOutcome, outcomeOfError } from './failure.ts';
import type { LiveSession } from './live-session.ts';
import type { SessionRegistry } from './session-registry.ts';
import type { SetupGate } from './setup-gate.ts';

type Work = Pick<BackendCall, 'taskId' | 'upstreamTaskId' | 'onUpstreamTaskId'>;
interface Result {
  text: string;
  ok: boolean;
  reason: ToolErrorReason | null;
  reward: number | null;
  finished: boolean;
}

export interface CallRequest {
  kind: 'call' | 'score_group';
  tool: string;
  /** JSON text */
  input: string;
  /** Set by a client that resumes an earlier call; null = a new one. */
  taskId: string | null;
  run: (backend: BackendSession, work: Work) => Promise<Result>;
}

/** A call whose task id may be told to the client now. */
export interface OpenCall {
  /** null when the client resumes a call that nobody knows. */
  taskId: string | null;
  /** Runs the tool, or joins or replays the call that did; never rejects. The same promise however often it is asked. */
  outcome(): Promise<CallOutcome>;
  /** The client vanished before it could learn the task id: a call of its own that has not begun does not run. */
  abandon(): void;
}

export interface CallRunnerOptions {
  ledger: CallLedger;
  leases: ReplicaLeases;
  clock: Clock;
  replicaId: string;
  onBackgroundError: (error: unknown, sid: string) => void;
}

/** So long a call waits for setup before its stream opens; a setup that fails until then is an HTTP error, later an SSE one. */
const SETUP_HOLD_MS = 20_000;
const POLL_MS = 250;
const UNSTORED_KEEP_MS = 600_000;

/**
 * Runs each call once. Its intent is in the ledger before the tool runs; whoever comes with its task id, here or on another
 * process, now or after a restart, joins the running call or gets the stored outcome.
 */
export class CallRunner {
  readonly #running = new Map<string, { sid: string; call: OpenCall }>();

  constructor(
    readonly registry: SessionRegistry,
    readonly setup: SetupGate,
    readonly options: CallRunnerOptions,
  ) {}

  /** Answers once the intent is stored (and setup is done, or has taken long); the tool runs when `outcome` is asked. */
  async open(live: LiveSession, request: CallRequest): Promise<OpenCall> {
    if (request.taskId !== null) return this.#resume(live, request, request.taskId);
    if (!this.setup.isOpen(live)) await this.#holdForSetup(live);
    const taskId = newTaskId();
    await this.options.ledger.intent({
      taskId,
      sid: live.record.sid,
      kind: request.kind,
      tool: request.tool,
      input: request.input,
      replicaId: this.options.replicaId,
      startedAt: this.options.clock.now(),
    });
    return this.#track(live, taskId, () => this.#run(live, request, { taskId, upstreamTaskId: null }));
  }

  /** Waits until no call runs, `graceMs` at most, then until the ledger holds everything. */
  async drain(graceMs: number): Promise<void> {
    const ends = [...this.#running.values()].map(({ call }) => call.outcome());
    const deadline = new AbortController();
    await Promise.race([Promise.all(ends), this.options.clock.sleep(graceMs, deadline.signal).catch(() => {})]);
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

  #track(live: LiveSession, taskId: string, run: () => Promise<CallOutcome>): OpenCall {
    const { sid } = live.record;
    let running: Promise<CallOutcome> | null = null;
    const call: OpenCall = {
      taskId,
      outcome: () => (running ??= run()),
      abandon: () => {
        if (running !== null) return;
        running = Promise.resolve(this.#finish(live, taskId, outcomeOfError(new PalestraError('call_abandoned'))));
      },
    };
    this.#running.set(taskId, { sid, call });
    return call;
  }

  async #run(live: LiveSession, request: CallRequest, work: Work): Promise<CallOutcome> {
    live.runningCalls += 1;
    let outcome: CallOutcome;
    try {
      if (!this.setup.isOpen(live)) await this.setup.wait(live);
      const backend = live.backend ?? (await this.registry.backend(live));
      const onUpstreamTaskId = (id: string) => this.#noteUpstream(live, work.taskId, id);
      outcome = { type: 'result', ...pick(await abortable(request.run(backend, { ...work, onUpstreamTaskId }), live.signal)) };
    } catch (error) {
      if (!(error instanceof PalestraError)) this.#reportUnexpected(error, live);
      outcome = outcomeOfError(error);
      await this.setup.note(live, error).catch((late: unknown) => this.options.onBackgroundError(late, live.record.sid));
    } finally {
      live.runningCalls -= 1;
      live.lastSeenAt = live.upstreamSeenAt = this.options.clock.now();
    }
    return this.#finish(live, work.taskId, outcome);
  }

  /** The client gets its outcome at once; that it reached the ledger is waited for by `drain`. */
  #finish(live: LiveSession, taskId: string, outcome: CallOutcome): CallOutcome {
    const background = (error: unknown) => this.options.onBackgroundError(error, live.record.sid);
    this.options.ledger.result({ taskId, outcome, failureClass: classifyOutcome(outcome), endedAt: this.options.clock.now() }).then(
      () => this.#running.delete(taskId),
      (error: unknown) => {
        background(error);
        // Not in the ledger: whoever resumes soon must still find it here.
        this.options.clock.after(UNSTORED_KEEP_MS, () => this.#running.delete(taskId));
      },
    );
    if (outcome.type === 'result' && outcome.finished && live.record.state !== 'finished') {
      this.registry.advance(live, 'finished').catch(background);
    }
    return outcome;
  }

  #noteUpstream(live: LiveSession, taskId: string, upstreamTaskId: string): void {
    this.options.ledger.upstream(taskId, upstreamTaskId).catch((error: unknown) => this.options.onBackgroundError(error, live.record.sid));
  }

  #reportUnexpected(error: unknown, live: LiveSession): void {
    if (error instanceof Error && error.name === 'ToolFailedError') return;
    this.options.onBackgroundError(error, live.record.sid);
  }

  async #resume(live: LiveSession, request: CallRequest, taskId: string): Promise<OpenCall> {
    const here = this.#running.get(taskId);
    if (here !== undefined) return here.sid === live.record.sid ? here.call : unknownCall();
    const record = await this.options.ledger.find(taskId);
    if (record === null || record.sid !== live.record.sid || record.kind !== request.kind) return unknownCall();
    if (record.outcome !== null) return settledCall(taskId, record.outcome);
    const follow = () => this.#follow(live, request, record).finally(() => this.#running.delete(taskId));
    return this.#running.get(taskId)?.call ?? this.#track(live, taskId, follow);
  }

  /** The outcome of a call that another process began: waits for it, or goes on with it when that process is dead. */
  async #follow(live: LiveSession, request: CallRequest, begun: CallRecord): Promise<CallOutcome> {
    const { ledger, leases, clock, replicaId } = this.options;
    try {
      for (let record: CallRecord | null = begun; record !== null; record = await ledger.find(begun.taskId)) {
        if (record.outcome !== null) return record.outcome;
        const ownerAlive = record.replicaId !== replicaId && (await leases.isAlive(record.replicaId));
        if (!ownerAlive && (await ledger.takeOver(record.taskId, record.replicaId, replicaId))) {
          return await this.#takeOver(live, request, record);
        }
        await clock.sleep(POLL_MS, live.signal);
      }
      return unknownOutcome;
    } catch (error) {
      return outcomeOfError(error);
    }
  }

  /** Resumes with the environment's server; without an id to resume by nobody can know what became of the call. */
  async #takeOver(live: LiveSession, request: CallRequest, record: CallRecord): Promise<CallOutcome> {
    if (record.upstreamTaskId !== null) {
      return this.#run(live, request, { taskId: record.taskId, upstreamTaskId: record.upstreamTaskId });
    }
    const lost = new PalestraError('session_lost');
    const outcome = this.#finish(live, record.taskId, outcomeOfError(lost));
    await this.setup.note(live, lost);
    return outcome;
  }
}

const pick = ({ text, ok, reason, reward, finished }: Result): Result => ({ text, ok, reason, reward, finished });

/** What the official client and its sandbox sibling match on. */
const unknownOutcome: CallOutcome = { type: 'tool_failed', message: 'unknown task_id' };
const unknownCall = (): OpenCall => settledCall(null, unknownOutcome);

function settledCall(taskId: string | null, outcome: CallOutcome): OpenCall {
  const settled = Promise.resolve(outcome);
  return { taskId, outcome: () => settled, abandon: () => {} };
}
