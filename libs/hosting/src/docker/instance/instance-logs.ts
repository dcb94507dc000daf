import { GrowingTimes } from '../../provider/growing-times.ts';
import type { LogLine } from '../../provider/provider.port.ts';
import { type Engine, isStatus } from '../engine/engine.ts';
import { names } from '../engine/names.ts';
import { inspectContainer } from './containers.ts';
import { logLines } from './log-lines.ts';

const RECONNECT_MS = 200;
const LAST_LINES_MS = 2_000;

/**
 * The log of an instance after `since`, and what it writes until it ends or is removed. Times grow from line to line, so that the time of the
 * last line is the place to continue. Rejects with `engine_unavailable` if the engine ends first.
 */
async function* followLog(engine: Engine, id: string, since: Date | null, signal: AbortSignal): AsyncGenerator<LogLine> {
  const container = names.server(id);
  let last = since?.getTime() ?? 0;
  for (;;) {
    try {
      const query = { follow: true, stdout: true, stderr: true, timestamps: true, since: GrowingTimes.startOf(last) };
      const stream = await engine.stream({ method: 'GET', path: `/containers/${container}/logs`, query }, signal);
      try {
        const growing = new GrowingTimes();
        // What follows the first new line is new, also if the clock of the machine was set back.
        let isNew = false;
        for await (const line of logLines(stream as AsyncIterable<Buffer>)) {
          const at = growing.next(line.at.getTime());
          if (!isNew && at <= last) continue;
          isNew = true;
          last = Math.max(last, at);
          yield { ...line, at: new Date(at) };
        }
      } finally {
        stream.destroy();
      }
    } catch (error) {
      if (isStatus(error, 404, 409)) return;
      throw engine.failure(error, signal);
    }
    // The stream also ends when the engine shuts down in order.
    const found = await inspectContainer(engine, container, signal);
    if (!found?.State.Running) return;
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
  }
}

/** The logs that this process reads, so that an instance is not removed before its last lines were read. */
export class LogReaders {
  readonly #engine: Engine;
  readonly #running = new Map<string, Set<Promise<void>>>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async *follow(id: string, since: Date | null, signal: AbortSignal): AsyncGenerator<LogLine> {
    let resolve = () => {};
    const promise = new Promise<void>((done) => (resolve = done));
    const running = this.#running.get(id) ?? new Set();
    this.#running.set(id, running.add(promise));
    try {
      yield* followLog(this.#engine, id, since, signal);
    } finally {
      running.delete(promise);
      if (running.size === 0) this.#running.delete(id);
      resolve();
    }
  }

  /** Resolves when all lines of an ended instance were read, or after the deadline: a reader may be slow. */
  async ended(id: string): Promise<void> {
    const running = this.#running.get(id);
    if (!running) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, LAST_LINES_MS)));
    await Promise.race([Promise.all(running), late]);
    clearTimeout(timer);
  }
}
