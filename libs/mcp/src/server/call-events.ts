import type { EventStore } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { PalestraError } from '@palestra/protocol';

/** Where the stream of a call stands. All that is needed to go on with it, on any process, is in the ids of its events. */
export interface CallCursor {
  /** In the ledger; null for a call that cannot be taken up again. */
  taskId: string | null;
  /** Of JSON-RPC: whose answer the stream ends with. */
  requestId: string | number;
  /** null: its client wants no progress. */
  progressToken: string | number | null;
  /** The last report. */
  progress: number;
  /** Events so far. */
  events: number;
}

export function freshCursor(taskId: string | null, requestId: string | number, progressToken: string | number | undefined): CallCursor {
  return { taskId, requestId, progressToken: progressToken ?? null, progress: 0, events: 0 };
}

const MAX_EVENT_ID = 4_096;

/**
 * The SDK's store of events, for the stream of one call. Nothing is stored: the ledger has the result, and what a client missed of the progress is of
 * no use later. So there is nothing to bound, and a stream can be taken up after a restart, too.
 */
export class CallEvents implements EventStore {
  readonly #cursor: CallCursor;

  constructor(cursor: CallCursor) {
    this.#cursor = cursor;
  }

  async storeEvent(): Promise<string> {
    this.#cursor.events += 1;
    const { taskId, requestId, progressToken, progress, events } = this.#cursor;
    return Buffer.from(JSON.stringify([taskId, requestId, progressToken, progress, events])).toString('base64url');
  }

  /** Never asked: to go on with a stream, its request is given to the SDK again, together with the call that runs. */
  async replayEventsAfter(): Promise<never> {
    throw new PalestraError('not_available');
  }
}

/** null for what is no event of ours. Whose call it is, the ledger says. */
export function cursorOf(lastEventId: string): (CallCursor & { taskId: string }) | null {
  if (lastEventId.length > MAX_EVENT_ID) return null;
  try {
    const fields: unknown = JSON.parse(Buffer.from(lastEventId, 'base64url').toString('utf8'));
    if (!Array.isArray(fields)) return null;
    const [taskId, requestId, progressToken, progress, events] = fields as unknown[];
    const isName = (value: unknown): value is string | number => typeof value === 'string' || typeof value === 'number';
    if (typeof taskId !== 'string' || !isName(requestId) || !(progressToken === null || isName(progressToken))) return null;
    if (typeof progress !== 'number' || typeof events !== 'number') return null;
    return { taskId, requestId, progressToken, progress, events };
  } catch {
    return null;
  }
}
