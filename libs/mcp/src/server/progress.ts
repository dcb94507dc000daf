import type { ServerNotification } from '@modelcontextprotocol/sdk/types.js';
import type { CallProgress } from '@palestra/session';
import type { CallCursor } from './call-events.ts';

/** Each report must be more than the one before, and we know of no progress: as little more as a tool's own reports leave room for. */
const BEAT_STEP = 1e-6;

/** How far a call has come, for whoever listens: the client that began it, and the one that took its stream up again. */
export class CallProgressRelay {
  readonly begunAt = Date.now();
  readonly #listeners = new Set<(progress: CallProgress) => void>();
  #latest: CallProgress | null = null;

  tell(progress: CallProgress): void {
    this.#latest = progress;
    for (const listener of this.#listeners) listener(progress);
  }

  /** Hears of the latest report at once. Returns what ends it. */
  listen(listener: (progress: CallProgress) => void): () => void {
    this.#listeners.add(listener);
    if (this.#latest !== null) listener(this.#latest);
    return () => void this.#listeners.delete(listener);
  }
}

/**
 * Sends `notifications/progress` to a client that asked for them: the tool's own reports, and every `beatMs` that it still runs, so that clients
 * with `resetTimeoutOnProgress` wait as long as it does. Returns what ends it.
 */
export function reportProgress(
  relay: CallProgressRelay,
  cursor: CallCursor,
  beatMs: number,
  send: (notification: ServerNotification) => Promise<void>,
): () => void {
  const { progressToken } = cursor;
  if (progressToken === null) return () => {};
  const report = (told: CallProgress) => {
    if (told.progress <= cursor.progress) return;
    cursor.progress = told.progress;
    beat.refresh();
    // Nobody is there to hear it: whoever takes the stream up again gets the next one.
    send({ method: 'notifications/progress', params: { progressToken, ...told } }).catch(() => {});
  };
  const beat = setInterval(() => {
    const seconds = Math.round((Date.now() - relay.begunAt) / 1_000);
    report({ progress: cursor.progress + BEAT_STEP, message: `Running for ${seconds} s.` });
  }, beatMs);
  beat.unref();
  const silence = relay.listen(report);
  return () => {
    clearInterval(beat);
    silence();
  };
}
