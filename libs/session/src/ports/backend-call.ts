import type { JsonObject, ToolErrorReason } from '@palestra/protocol';

export interface BackendCall {
  tool: string;
  input: JsonObject;
  /** Ledger id of this call. */
  taskId: string;
  /**
   * The id under which the environment's server runs the call; set when the API process that began the call died. The backend resumes the
   * call and never runs it again. It rejects with `session_lost` when the outcome cannot be known.
   */
  upstreamTaskId?: string | null;
  /**
   * An earlier process began this call, and how far it came is unknown. The backend runs it only where the environment's server can tell
   * whether it has run the ledger id; otherwise it rejects with `session_lost`.
   */
  mayHaveRun?: boolean;
  /** The backend calls this as soon as the environment's server has given the call an id by which it can be resumed, also after a restart. */
  onUpstreamTaskId?: (upstreamTaskId: string) => void;
  /** The backend calls this when the server reports the progress of the tool. */
  onProgress?: (progress: CallProgress) => void;
}

/** Progress of a running call, as its tool reports it. */
export interface CallProgress {
  /** Grows with every report; of `total`, where that is known. */
  progress: number;
  total?: number;
  message?: string;
}

/**
 * A finished call. `text` is the JSON text of a `RunToolOutput` exactly as clients get it: it keeps the numbers and the key order of the
 * environment's server, and has the nullable keys and `reason` that older servers leave out.
 */
export interface ToolCallResult {
  text: string;
  ok: boolean;
  /** null when ok */
  reason: ToolErrorReason | null;
  reward: number | null;
  finished: boolean;
}

/** The tool itself raised: sent as SSE `event: error` with this message, without the name of the exception's type. */
export class ToolFailedError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'ToolFailedError';
  }
}
