import type { ServerNotification } from '@modelcontextprotocol/sdk/types.js';
import type { CallProgress } from '@palestra/session';
import type { CallCursor } from './call-events.ts';

/** MCP progress must increase. The smallest step leaves room for the tool's own reports. */
const BEAT_STEP = 1e-6;

/** Relays the progress of a call to its listeners: the client that started it and one that resumed its stream. */
export class CallProgressRelay {
  readonly startedAt = Date.now();
  readonly #listeners = new Set<(progress: CallProgress) => void>();
  #latest: CallProgress | null = null;

  update(progress: CallProgress): void {
    this.#latest = progress;
    for (const listener of this.#listeners) listener(progress);
  }

  /** Reports the latest progress at once. Returns a function that removes the listener. */
  listen(listener: (progress: CallProgress) => void): () => void {
    this.#listeners.add(listener);
    if (this.#latest !== null) listener(this.#latest);
    return () => void this.#listeners.delete(listener);
  }
}

/**
 * Sends `notifications/progress` to a client that asked for it: reports of the tool, and one every `beatMs`, so that clients with
 * `resetTimeoutOnProgress` keep waiting. Returns a function that stops it.
 */
export function reportProgress(
  relay: CallProgressRelay,
  cursor: CallCursor,
  beatMs: number,
  send: (notification: ServerNotification) => Promise<void>,
): () => void {
  const { progressToken } = cursor;
  if (progressToken === null) return () => {};
  const report = (progress: CallProgress) => {
    if (progress.progress <= cursor.progress) return;
    cursor.progress = progress.progress;
    beat.refresh();
    // The client is gone; a resumed stream gets the next report.
    send({ method: 'notifications/progress', params: { progressToken, ...progress } }).catch(() => {});
  };
  const beat = setInterval(() => {
    const seconds = Math.round((Date.now() - relay.startedAt) / 1_000);
    report({ progress: cursor.progress + BEAT_STEP, message: `Running for ${seconds} s.` });
  }, beatMs);
  beat.unref();
  const stopListening = relay.listen(report);
  return () => {
    clearInterval(beat);
    stopListening();
  };
}
