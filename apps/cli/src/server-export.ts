import type { TaskExportBody, TaskExportView } from '@palestra/protocol';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionError, PalestraApiError, type PalestraClient } from '@palestra/client';

/** Waits between two looks at the export grow with its age, within these bounds. */
const MIN_POLL_MS = 40;
const MAX_POLL_MS = 1_000;

/**
 * Has the server read the tasks and write the file; answers the finished export. null when it does not: another ORS server, names
 * or environments that it does not know, too many exports at once, no answer at all. Rejects when an export that it took failed as a whole.
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
    // Without an answer the sessions try again, for longer.
    if (refused || error instanceof ConnectionError) return null;
    throw error;
  }
  const startedAt = Date.now();
  while (view.state === 'running') {
    try {
      await sleep(Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, (Date.now() - startedAt) / 10)), undefined, { signal });
    } catch (error) {
      // The user has interrupted the command: nobody will fetch the file.
      await client.exports.cancel(view.id).catch(() => {});
      throw error;
    }
    view = await client.exports.get(view.id);
    onProgress(view);
  }
  if (view.state === 'failed') throw new Error(`the export failed: ${view.error ?? 'no reason given'}`);
  return view;
}
