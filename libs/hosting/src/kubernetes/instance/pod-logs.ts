import { setTimeout as sleep } from 'node:timers/promises';
import { GrowingTimes } from '../../provider/growing-times.ts';
import { type LogLine, MAX_LINE_CHARS } from '../../provider/provider.port.ts';
import { type Cluster, failure, isRefusal } from '../cluster/cluster.ts';
import type { Pod } from './pod.ts';

export interface PodLog {
  cluster: Cluster;
  /** Name of the pod. */
  pod: string;
  container: string;
}

const SECOND = 1_000;
const RETRY_MS = 500;
const STAMP = /^(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) ?/;
/** A line, and its time before it. */
const MOST_CHARS = MAX_LINE_CHARS + 64;

/**
 * The log of a container after `since`, and what it writes until it ends or its pod is removed. Times grow from line to line, so that the time of
 * the last line is the place to continue. A cluster does not say which of the two streams a line was written to: all are `stdout`. Rejects with
 * `engine_unavailable` if the API server ends first.
 */
export async function* followLog(log: PodLog, since: Date | null, signal: AbortSignal): AsyncGenerator<LogLine> {
  const { cluster, pod, container } = log;
  let last = since?.getTime() ?? 0;
  const path = `/api/v1/namespaces/${cluster.namespace}/pods/${pod}`;
  for (;;) {
    // Read before, so that what an ended container wrote is read after it ended.
    const isOver = await hasEnded(log, path, signal);
    if (isOver === null) return;
    try {
      // The API server knows whole seconds.
      const sinceTime = last === 0 ? undefined : new Date(GrowingTimes.startOf(last) * SECOND).toISOString();
      const query = { container, follow: !isOver, timestamps: true, sinceTime };
      const stream = await cluster.stream({ method: 'GET', path: `${path}/log`, query }, signal);
      try {
        const growing = new GrowingTimes();
        // What follows the first new line is new, also if the clock of the node was set back.
        let isNew = false;
        for await (const text of linesOf(stream as AsyncIterable<Buffer>)) {
          const stamp = STAMP.exec(text);
          const at = growing.next(stamp ? new Date(stamp[1]!).getTime() : Date.now());
          if (!isNew && at <= last) continue;
          isNew = true;
          last = Math.max(last, at);
          yield { at: new Date(at), stream: 'stdout', text: text.slice(stamp?.[0].length ?? 0).slice(0, MAX_LINE_CHARS) };
        }
      } finally {
        stream.destroy();
      }
      if (isOver) return;
    } catch (error) {
      if (isRefusal(error, 404)) return;
      // 400: the container does not run yet.
      if (!isRefusal(error, 400)) throw failure(error, signal);
      if (isOver) return;
    }
    // The stream also ends when a node rotates its log, or the API server shuts down in order.
    await sleep(RETRY_MS, undefined, { signal });
  }
}

/** Null if there is no such pod. */
async function hasEnded({ cluster, container }: PodLog, path: string, signal: AbortSignal): Promise<boolean | null> {
  const pod = await cluster.find<Pod>(path, signal);
  if (pod === null) return null;
  const { phase, containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const status = [...initContainerStatuses, ...containerStatuses].find(({ name }) => name === container);
  return status?.state?.terminated !== undefined || phase === 'Failed' || phase === 'Succeeded';
}

/** Of UTF-8 text; what is longer than a line may be is cut. */
async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let line = '';
  for await (const chunk of chunks) {
    const pieces = decoder.decode(chunk, { stream: true }).split('\n');
    const last = pieces.pop()!;
    for (const piece of pieces) {
      yield appended(line, piece).replace(/\r$/, '');
      line = '';
    }
    line = appended(line, last);
  }
  if (line !== '') yield line;
}

const appended = (line: string, piece: string): string => line + piece.slice(0, Math.max(0, MOST_CHARS - line.length));
