import type { TaskExportBody, TaskExportView } from '@palestra/protocol';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionError, PalestraApiError, type PalestraClient } from '@palestra/client';

/** The poll interval grows with the age of the export, within these bounds. */
const MIN_POLL_MS = 40;
const MAX_POLL_MS = 1_000;

/**
 * Exports tasks on the server and returns the finished export. Returns null if the server refuses: another ORS server, unknown names
 * or environments, too many exports, or no response. Rejects if an accepted export fails.
 */
export async function exportOnServer(
  client: PalestraClient,
  request: TaskExportBody,
  signal: AbortSignal,
  onProgress: (view: TaskExportView) => void,
): Promise<TaskExportView | null> {
  let view: TaskExportView;
  try {
    view = await client.exports.create(request);
  } catch (error) {
    const refused = error instanceof PalestraApiError && error.status !== 401;
    // Without a response the caller reads by sessions, which retry for longer.
    if (refused || error instanceof ConnectionError) return null;
    throw error;
  }
  const startedAt = Date.now();
  while (view.state === 'running') {
    try {
      await sleep(Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, (Date.now() - startedAt) / 10)), undefined, { signal });
    } catch (error) {
      // The user interrupted the command, so the file will not be downloaded.
      await client.exports.cancel(view.id).catch(() => {});
      throw error;
    }
    view = await client.exports.get(view.id);
    onProgress(view);
  }
  if (view.state === 'failed') throw new Error(`The export failed: ${view.error ?? 'unknown reason'}`);
  return view;
}
