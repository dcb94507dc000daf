import { abortable, type Clock } from '@palestra/kit';
import { type JsonObject, PalestraError, parseJson, stringifyJson } from '@palestra/protocol';
import { ToolFailedError } from '../ports/backend-call.ts';
import type { Backend, BackendCreate, BackendSession } from '../ports/backend.port.ts';
import type { CallLedger, CallOutcome, CallRecord } from '../ports/call-ledger.port.ts';
import type { SessionObserver } from '../ports/observer.port.ts';
import type { SessionRecord } from '../ports/session-store.port.ts';
import { outcomeOfError } from '../registry/failure.ts';
import { failureError, type LiveSession } from '../registry/live-session.ts';
import type { SessionRegistry } from '../registry/session-registry.ts';
import { isDead, isSetUp } from '../state.ts';
import { withDeadline } from './with-deadline.ts';
import { forgetEpisode, openEpisode } from './open-episode.ts';

export interface RestorerOptions {
  ledger: CallLedger;
  clock: Clock;
  replicaId: string;
  observer: SessionObserver;
  onBackgroundError: (error: unknown, sid: string) => void;
}

/** How long a replay waits for a new process before the session is lost. */
const PROCESS_WAIT_MS = 60_000;
const PROCESS_POLL_MS = 200;
/** What the opening of an episode waits for, with its pause: a process that starts, and room. */
const WAITS_MS = new Map([
  ['environment_starting', PROCESS_POLL_MS],
  ['backend_unreachable', PROCESS_POLL_MS],
  ['capacity_exhausted', 1_000],
  ['instance_failed', 1_000],
]);
/** The server did not get a request of the replay. */
const NOT_SENT = new Set(['backend_unreachable', 'environment_starting']);
/** How often a replay is tried when its process dies, too. */
const ATTEMPTS = 3;
const FORGET_DEADLINE_MS = 10_000;

function divergence(call: CallRecord, position: number, replayed: CallOutcome): string {
  return (
    `Session diverged: replayed in a new process, call ${position} (${call.tool}, task id ${call.taskId}) gave ` +
    `${describeOutcome(replayed)} where it had given ${describeOutcome(call.outcome!)}. Its environment declares itself deterministic but is not.`
  );
}

const describeOutcome = (outcome: CallOutcome): string => {
  const text = outcome.type === 'result' ? outcome.text : outcome.type === 'tool_failed' ? `the error ${outcome.message}` : outcome.detail;
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
};

/**
 * Restores the session of a deterministic environment after its process died (ADR 9). A new process gets the same task and the same calls, and
 * each result is compared with the ledger. A difference ends the session as `diverged`.
 */
export class Restorer {
  constructor(
    readonly registry: SessionRegistry,
    readonly options: RestorerOptions,
  ) {}

  /** Whether `error` means that the process died under a session that can be replayed. */
  async mayRestore(live: LiveSession, error: unknown): Promise<boolean> {
    if (!(error instanceof PalestraError) || error.code !== 'session_lost' || isDead(live.record.state)) return false;
    return (await this.registry.hosted(live)).policy.deterministic;
  }

  /** Replays the calls, once for all waiting requests. Rejects with the error of the session when that fails. */
  async restore(live: LiveSession): Promise<void> {
    live.restoring ??= this.#restore(live).finally(() => {
      live.restoring = null;
    });
    await abortable(live.restoring, live.signal);
  }

  /** Restores a session that is `restoring` in the store; does nothing for others. */
  async finish(live: LiveSession): Promise<void> {
    if (live.record.state === 'restoring' || live.restoring !== null) await this.restore(live);
  }

  /** Opens a new episode and runs these calls in it. Throws `session_diverged` when a result differs, and timeouts like the first run. */
  async replay(live: LiveSession, calls: CallRecord[]): Promise<{ ref: JsonObject; finished: boolean }> {
    const { backend: server, policy } = await this.registry.hosted(live);
    const timedOut = new AbortController();
    const signal = AbortSignal.any([live.signal, timedOut.signal]);
    const inTime = <T>(work: Promise<T>, ms: number, code: 'setup_timeout' | 'call_timeout', subject: string) =>
      withDeadline(this.options.clock, work, ms, () => {
        const late = new PalestraError(code, { detail: `Replayed in a fresh process, ${subject} took longer than ${ms / 1000} s.` });
        timedOut.abort(late);
        return late;
      });
    const ref = await inTime(
      this.#open(server, this.#createRequest(live.record, live), signal),
      policy.setupTimeoutMs,
      'setup_timeout',
      'its constructor',
    );
    const backend = server.session(ref);
    try {
      const setup: Promise<unknown> = backend.ready ? backend.ready(signal) : backend.prompt(signal);
      await inTime(setup, policy.setupTimeoutMs, 'setup_timeout', 'its setup');
      let finished = false;
      for (const [index, call] of calls.entries()) {
        const replayed = this.#replayCall(live, backend, call, signal);
        const outcome = await inTime(replayed, policy.callTimeoutMs, 'call_timeout', `call ${index + 1} (${call.tool})`);
        if (!sameOutcome(outcome, call.outcome!)) {
          throw new PalestraError('session_diverged', { detail: divergence(call, index + 1, outcome) });
        }
        finished ||= outcome.type === 'result' && outcome.finished;
      }
      return { ref, finished };
    } catch (error) {
      await this.#forget(live, ref);
      throw error;
    }
  }

  /** Deletes an episode that no session uses. */
  async #forget(live: LiveSession, ref: JsonObject): Promise<void> {
    const { backend } = await this.registry.hosted(live);
    await forgetEpisode(backend, ref, FORGET_DEADLINE_MS);
  }

  async #restore(live: LiveSession): Promise<void> {
    const { clock, ledger, observer, replicaId, onBackgroundError } = this.options;
    live.backend = null;
    live.isSetUp = false;
    if (!(await this.#claim(live))) return;
    const startedAt = clock.now();
    const isOurs = ({ state, ownerReplicaId }: SessionRecord) => state === 'restoring' && ownerReplicaId === replicaId;
    const before = live.record.ref;
    if (before !== null) await this.#forget(live, before);
    let calls: CallRecord[] = [];
    const end = (outcome: 'restored' | 'diverged' | 'failed') =>
      observer.restored?.(live.record, { calls: calls.length, tookMs: clock.now() - startedAt, outcome });
    try {
      // Include results that are still being written.
      await ledger.drain();
      calls = await ledger.journal(live.record.sid);
      const { ref, finished } = await this.#replayWithRetry(live, calls);
      const { owned } = await this.registry.hosted(live);
      const facts = { ref, ownerReplicaId: owned ? replicaId : null };
      let isBound = false;
      try {
        isBound = await this.registry.advance(live, finished ? 'finished' : 'ready', facts, isOurs);
      } finally {
        // On a shared server, the SID may already mean the episode of the process that continues the session.
        if (!isBound && (owned || isDead(live.record.state) || isOurs(live.record))) await this.#forget(live, ref);
      }
      if (!isBound) throw new PalestraError('session_moved');
      end('restored');
    } catch (error) {
      if (live.signal.aborted) throw live.signal.reason;
      // The session stays as it is when the store is away: its next request replays it.
      if (error instanceof PalestraError && (error.code === 'session_moved' || error.code === 'database_unavailable')) throw error;
      const reason = error instanceof PalestraError ? error : new PalestraError('session_lost', { cause: error });
      if (reason !== error) onBackgroundError(error, live.record.sid);
      const diverged = reason.code === 'session_diverged';
      const detail = this.registry.mask(live).hide(reason.message);
      const failure = diverged ? { code: reason.code, status: reason.status, detail } : lostBecause(detail);
      await this.registry.advance(live, diverged ? 'diverged' : 'lost', { failure }, isOurs);
      end(diverged ? 'diverged' : 'failed');
      throw failureError(failure);
    }
  }

  /**
   * Makes the session ours for the time of the replay. If another process replays it, waits for that; false when that process has restored
   * it. Throws `session_moved` when the session went elsewhere.
   */
  async #claim(live: LiveSession): Promise<boolean> {
    const { clock, replicaId } = this.options;
    const isElsewhere = ({ state, ownerReplicaId }: SessionRecord) =>
      state === 'restoring' && ownerReplicaId !== null && ownerReplicaId !== replicaId;
    for (;;) {
      const { version } = live.record;
      const isUnchanged = (record: SessionRecord) => !isElsewhere(record) && (record.version === version || record.writtenBy === replicaId);
      if (await this.registry.advance(live, 'restoring', { ownerReplicaId: replicaId }, isUnchanged)) return true;
      while (isElsewhere(live.record)) {
        await clock.sleep(PROCESS_POLL_MS, live.signal);
        await this.registry.refresh(live);
      }
      const { state, ownerReplicaId } = live.record;
      if (isSetUp(state) && (ownerReplicaId === null || ownerReplicaId === replicaId)) return false;
      if (state !== 'restoring') throw new PalestraError('session_moved');
    }
  }

  async #replayWithRetry(live: LiveSession, calls: CallRecord[]): Promise<{ ref: JsonObject; finished: boolean }> {
    const { clock } = this.options;
    const deadline = clock.now() + PROCESS_WAIT_MS;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.replay(live, calls);
      } catch (error) {
        const code = error instanceof PalestraError ? error.code : '';
        const mayGoBetter = code === 'session_lost' || (NOT_SENT.has(code) && clock.now() < deadline);
        if (!mayGoBetter || live.signal.aborted || attempt === ATTEMPTS) throw error;
      }
    }
  }

  /** Opens an episode; waits until the process of the environment runs again and has room. */
  async #open(backend: Backend, create: BackendCreate, signal: AbortSignal): Promise<JsonObject> {
    const { clock } = this.options;
    const deadline = clock.now() + PROCESS_WAIT_MS;
    for (;;) {
      try {
        return await openEpisode(backend, create, signal);
      } catch (error) {
        const pauseMs = error instanceof PalestraError ? WAITS_MS.get(error.code) : undefined;
        if (pauseMs === undefined || clock.now() > deadline) throw error;
        await clock.sleep(pauseMs, signal);
      }
    }
  }

  #createRequest(record: SessionRecord, live: LiveSession): BackendCreate {
    if (record.task === null) throw new PalestraError('session_lost');
    const { toolset_name: toolsetName, ...task } = parseJson(this.registry.mask(live).reveal(stringifyJson(record.task))) as JsonObject;
    return {
      sid: record.sid,
      env: record.env,
      task: task as BackendCreate['task'],
      toolsetName: (toolsetName as string | null) ?? null,
      secrets: this.registry.secrets(live),
    };
  }

  async #replayCall(live: LiveSession, backend: BackendSession, call: CallRecord, signal: AbortSignal): Promise<CallOutcome> {
    const mask = this.registry.mask(live);
    const input = parseJson(mask.reveal(call.input)) as JsonObject;
    try {
      const { text, ok, reason, reward, finished } = await backend.call({ tool: call.tool, input, taskId: call.taskId }, signal);
      return { type: 'result', text: mask.hide(text), ok, reason, reward, finished };
    } catch (error) {
      // Only an error of the tool is a result.
      if (!(error instanceof ToolFailedError)) throw error;
      const outcome = outcomeOfError(error);
      return outcome.type === 'tool_failed' ? { ...outcome, message: mask.hide(outcome.message) } : outcome;
    }
  }
}

function sameOutcome(a: CallOutcome, b: CallOutcome): boolean {
  if (a.type === 'result' && b.type === 'result') return a.text === b.text;
  return a.type === 'tool_failed' && b.type === 'tool_failed' && a.message === b.message;
}

function lostBecause(why: string) {
  const detail = why.startsWith('Session lost') ? why : `Session lost: its process died and it could not be restored. ${why}`;
  return { code: 'session_lost', status: 410, detail } as const;
}
