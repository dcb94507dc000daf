import type { EventStore } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { PalestraError } from '@palestra/protocol';

/** The position in the stream of a call. The ids of events contain it, so that any process can resume the stream. */
export interface CallCursor {
  /** Task id in the ledger; null: the call cannot be resumed. */
  taskId: string | null;
  /** The JSON-RPC request that the stream answers. */
  requestId: string | number;
  /** null: the client wants no progress. */
  progressToken: string | number | null;
  /** The last reported progress. */
  progress: number;
  /** Number of events. */
  events: number;
}

export function freshCursor(taskId: string | null, requestId: string | number, progressToken: string | number | undefined): CallCursor {
  return { taskId, requestId, progressToken: progressToken ?? null, progress: 0, events: 0 };
}

const MAX_EVENT_ID = 4_096;

/**
 * The SDK's event store for the stream of one call. It stores nothing: the ledger has the result, and missed progress is not needed. A
 * stream can therefore be resumed after a restart.
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

  /** Not used: to resume a stream, the SDK gets its request again, with the running call. */
  async replayEventsAfter(): Promise<never> {
    throw new PalestraError('not_available');
  }
}

/** Parses an event id; null if it is not ours. The ledger tells whose call it is. */
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
