import type { ServerResponse } from 'node:http';

/**
 * Calls `end` when the response is closed: at once if the client has left already, for instance while the request was authenticated. `close`
 * is emitted only once, so a listener that is added later never runs.
 */
export function onClosed(raw: Pick<ServerResponse, 'closed' | 'once'>, end: () => void): void {
  if (raw.closed) end();
  else raw.once('close', end);
}
