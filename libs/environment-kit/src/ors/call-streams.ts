import { type Clock, newTaskId } from '@palestra/kit';
import { cutErrorText, encodeSseEvent, encodeSseHeartbeat, encodeSseResult, SSE_HEADERS, SSE_HEARTBEAT_MS } from '@palestra/kit/sse';
import type { ServerResponse } from 'node:http';
import { Tombstones } from '../host/tombstones.ts';

/** How long a finished call can be resumed. */
const KEEP_MS = 5 * 60_000;

interface RunningCall {
  sid: string;
  /** The SSE events that end its stream; null while it runs. */
  ending: string | null;
  ended: Promise<string>;
}

/** Calls by task id: each runs once, and each connection that asks for it gets the whole answer. */
export class CallStreams {
  readonly #calls = new Map<string, RunningCall>();
  /** Ids that callers gave and whose results are forgotten: such a call must not run again. */
  readonly #forgotten = new Tombstones();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Starts `run`, which resolves to a JSON text, and streams its outcome. It goes on when the client hangs up. A caller that gives
   * the call's id may send it again: the call then runs once.
   */
  async start(response: ServerResponse, sid: string, givenId: string | null, run: () => Promise<string>): Promise<void> {
    if (givenId !== null && (this.#calls.has(givenId) || this.#forgotten.has(givenId))) return this.resume(response, sid, givenId);
    const taskId = givenId ?? newTaskId();
    const call: RunningCall = { sid, ending: null, ended: Promise.resolve('') };
    call.ended = run()
      .then(encodeSseResult, (error: unknown) =>
        encodeSseEvent('error', cutErrorText(error instanceof Error ? error.message : String(error))),
      )
      .then((ending) => {
        this.#clock.after(KEEP_MS, () => {
          this.#calls.delete(taskId);
          if (givenId !== null) this.#forgotten.add(taskId);
        });
        return (call.ending = ending);
      });
    this.#calls.set(taskId, call);
    // A tool that needs no I/O has its result by then, and the whole answer is one packet.
    await new Promise(setImmediate);
    await this.#stream(response, taskId, call);
  }

  /** Streams a call that was started before; only its own session may. */
  async resume(response: ServerResponse, sid: string, taskId: string): Promise<void> {
    const call = this.#calls.get(taskId);
    if (call?.sid === sid) return this.#stream(response, taskId, call);
    response.writeHead(200, SSE_HEADERS).end(encodeSseEvent('error', 'unknown task_id'));
  }

  async #stream(response: ServerResponse, taskId: string, call: RunningCall): Promise<void> {
    response.writeHead(200, SSE_HEADERS);
    const opening = encodeSseEvent('task_id', taskId);
    if (call.ending !== null) {
      response.end(opening + call.ending);
      return;
    }
    response.write(opening);
    const heartbeat = setInterval(() => response.write(encodeSseHeartbeat(new Date(this.#clock.now()))), SSE_HEARTBEAT_MS);
    const hungUp = new Promise<null>((resolve) => response.once('close', () => resolve(null)));
    const ending = await Promise.race([call.ended, hungUp]);
    clearInterval(heartbeat);
    if (ending !== null) response.end(ending);
  }
}
