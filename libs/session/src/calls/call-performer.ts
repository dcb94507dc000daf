import type { Clock } from '@palestra/kit';
import { cutErrorText } from '@palestra/kit/sse';
import { PalestraError } from '@palestra/protocol';
import type { Restorer } from '../lifecycle/restorer.ts';
import type { SetupGate } from '../lifecycle/setup-gate.ts';
import type { BackendCall, ToolCallResult } from '../ports/backend-call.ts';
import type { BackendSession } from '../ports/backend.port.ts';
import type { CallIntent, CallOutcome, CallResult } from '../ports/call-ledger.port.ts';
import type { SessionObserver } from '../ports/observer.port.ts';
import { classifyOutcome, outcomeOfError } from '../registry/failure.ts';
import type { LiveSession } from '../registry/live-session.ts';
import type { SessionRegistry } from '../registry/session-registry.ts';
import { CallDeadlines } from './call-deadlines.ts';

/** One attempt to run a call. */
export type CallAttempt = Pick<BackendCall, 'taskId' | 'upstreamTaskId' | 'mayHaveRun' | 'onUpstreamTaskId'>;
export type CallEnd = Omit<CallResult, 'taskId'>;

/** The request to the backend. */
export interface ToolRun {
  tool: string;
  run: (backend: BackendSession, attempt: CallAttempt) => ToolCallResult | Promise<ToolCallResult>;
}

export interface CallPerformerOptions {
  clock: Clock;
  observer: SessionObserver;
  onBackgroundError: (error: unknown, sid: string) => void;
  /** The environment's server has assigned its own id to the call. */
  onUpstream: (live: LiveSession, taskId: string, upstreamTaskId: string) => void;
}

/** A call that needs more restores of its session probably kills the process. */
const MAX_RESTORES = 2;
/** Pause before an idempotent tool whose outcome is unknown runs again. */
const REPEAT_PAUSE_MS = 500;

/** Runs the tool of a stored call. The outcome is a result, a tool that raised, or a failure that must not become a reward. */
export class CallPerformer {
  readonly #deadlines: CallDeadlines;

  constructor(
    readonly registry: SessionRegistry,
    readonly setup: SetupGate,
    readonly restorer: Restorer,
    readonly options: CallPerformerOptions,
  ) {
    this.#deadlines = new CallDeadlines(options.clock);
  }

  /** Does not reject. */
  async perform(live: LiveSession, request: ToolRun, intent: CallIntent, attempt: CallAttempt): Promise<CallEnd> {
    const { clock, observer } = this.options;
    const startedAt = clock.now();
    observer.callStarted?.(intent, live.record);
    live.runningCalls += 1;
    let outcome: CallOutcome;
    try {
      outcome = await this.#runOnce(live, request, attempt);
    } catch (error) {
      if (!(error instanceof PalestraError)) this.#reportUnexpected(error, live);
      outcome = this.#masked(live, outcomeOfError(error));
      await this.setup.recordFailure(live, error).catch((late: unknown) => this.options.onBackgroundError(late, live.record.sid));
    }
    const endedAt = clock.now();
    live.runningCalls -= 1;
    live.lastSeenAt = live.lastRequestAt = live.upstreamSeenAt = endedAt;
    const failureClass = classifyOutcome(outcome);
    observer.callEnded?.(intent, live.record, { outcome, failureClass, ranMs: endedAt - startedAt });
    return { outcome, failureClass, endedAt };
  }

  /** Runs the tool once. It runs again only in a session that was restored to the moment before, or when the tool is idempotent. */
  async #runOnce(live: LiveSession, request: ToolRun, attempt: CallAttempt): Promise<CallOutcome> {
    for (let restores = 0; ; restores += 1) {
      if (!this.setup.isDone(live)) await this.setup.wait(live);
      const { policy } = live.hosted ?? (await this.registry.hosted(live));
      const backend = live.backend ?? (await this.registry.backend(live));
      const onUpstreamTaskId = (id: string) => this.options.onUpstream(live, attempt.taskId, id);
      const onTimeout = () =>
        new PalestraError('call_timeout', {
          detail: `The call of ${request.tool} took longer than ${policy.callTimeoutMs / 1000} s and was given up; whether it will end is unknown.`,
        });
      try {
        const { taskId, upstreamTaskId, mayHaveRun } = attempt;
        const run = request.run(backend, { taskId, upstreamTaskId, mayHaveRun, onUpstreamTaskId });
        return this.#resultOf(
          live,
          run instanceof Promise ? await this.#deadlines.wait(live.signal, run, policy.callTimeoutMs, onTimeout) : run,
        );
      } catch (error) {
        if (restores >= MAX_RESTORES) throw error;
        if (await this.restorer.mayRestore(live, error)) await this.restorer.restore(live);
        else if (mayRepeat(error, policy.idempotentTools.includes(request.tool)))
          await this.options.clock.sleep(REPEAT_PAUSE_MS, live.signal);
        else throw error;
      }
    }
  }

  #resultOf(live: LiveSession, { text, ok, reason, reward, finished }: ToolCallResult): CallOutcome {
    return { type: 'result', text: this.registry.mask(live).hide(text), ok, reason, reward, finished };
  }

  #masked(live: LiveSession, outcome: Exclude<CallOutcome, { type: 'result' }>): CallOutcome {
    const mask = this.registry.mask(live);
    if (outcome.type === 'tool_failed') return { ...outcome, message: cutErrorText(mask.hide(outcome.message)) };
    return { ...outcome, detail: mask.hide(outcome.detail) };
  }

  #reportUnexpected(error: unknown, live: LiveSession): void {
    if (error instanceof Error && error.name === 'ToolFailedError') return;
    this.options.onBackgroundError(error, live.record.sid);
  }
}

const mayRepeat = (error: unknown, idempotent: boolean): boolean =>
  idempotent && error instanceof PalestraError && error.code === 'session_lost';
