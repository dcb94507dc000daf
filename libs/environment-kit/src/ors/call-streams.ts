import { type Clock, newTaskId } from '@palestra/kit';
import { cutErrorText, encodeSseEvent, encodeSseHeartbeat, encodeSseResult, SSE_HEADERS, SSE_HEARTBEAT_MS } from '@palestra/kit/sse';
import type { ServerResponse } from 'node:http';
import { Tombstones } from '../host/tombstones.ts';

/** How long a finished call can be resumed. */
const KEEP_MS = 5 * 60_000;

interface RunningCall {
  sid: string;
  /** The SSE events at the end of its stream; null while the call runs. */
  ending: string | null;
  ended: Promise<string>;
}

/** Calls by task id. Each call runs once, and each connection that requests it gets the whole result. */
export class CallStreams {
  readonly #calls = new Map<string, RunningCall>();
  /** Call ids of clients whose results are no longer stored. Such a call must not run again. */
  readonly #forgotten = new Tombstones();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Starts `run`, which resolves to a JSON text, and streams its result. The call continues if the client disconnects. A client can
   * repeat a call with its `callId`; the call then runs once.
   */
  async start(response: ServerResponse, sid: string, callId: string | null, run: () => Promise<string>): Promise<void> {
    if (callId !== null && (this.#calls.has(callId) || this.#forgotten.has(callId))) return this.resume(response, sid, callId);
    const taskId = callId ?? newTaskId();
    const call: RunningCall = { sid, ending: null, ended: Promise.resolve('') };
    call.ended = run()
      .then(encodeSseResult, (error: unknown) =>
        encodeSseEvent('error', cutErrorText(error instanceof Error ? error.message : String(error))),
      )
      .then((ending) => {
        this.#clock.after(KEEP_MS, () => {
          this.#calls.delete(taskId);
          if (callId !== null) this.#forgotten.add(taskId);
        });
        return (call.ending = ending);
      });
    this.#calls.set(taskId, call);
    // A tool without I/O has its result by then, so the whole response is one packet.
    await new Promise(setImmediate);
    await this.#stream(response, taskId, call);
  }

  /** Streams a running or finished call of this session. */
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
    const disconnected = new Promise<null>((resolve) => response.once('close', () => resolve(null)));
    const ending = await Promise.race([call.ended, disconnected]);
    clearInterval(heartbeat);
    if (ending !== null) response.end(ending);
  }
}
