import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { type JsonObject, PalestraError, stringifyJson } from '@palestra/protocol';
import { type Caller, type CallOutcome, errorOfOutcome, type OpenCall, type SessionEngine } from '@palestra/session';
import { resultOf } from '../wire/to-mcp.ts';
import { CallProgressRelay } from './progress.ts';

export type RequestId = string | number;

export interface McpCall {
  open: OpenCall;
  progress: CallProgressRelay;
  /** Runs the call. Rejects with an infrastructure failure, which is never a result. */
  result(): Promise<CallToolResult>;
  /** The client left before it got a response: see {@link OpenCall.abandon}. */
  abandon(): void;
}

interface Running {
  /** Session and JSON-RPC request id. */
  key: string;
  /** JSON text of tool and input. */
  signature: string;
  taskId: string;
  progress: CallProgressRelay;
}

/** Running tool calls of MCP clients by their request ids, so that a repeated request joins its call. */
export class McpCalls {
  readonly #engine: SessionEngine;
  readonly #byRequest = new Map<string, Running>();
  readonly #byTask = new Map<string, Running>();

  constructor(engine: SessionEngine) {
    this.#engine = engine;
  }

  /**
   * Runs a tool once. A request with the id, tool and input of a running call joins it, because MCP ids are unique in a session. So does an
   * equal call whose connection broke, whatever its id (docs/adr/0007).
   */
  async begin(caller: Caller, sid: string, request: { requestId: RequestId; tool: string; input: JsonObject }): Promise<McpCall> {
    const { requestId, tool, input } = request;
    const key = `${sid} ${typeof requestId} ${requestId}`;
    const signature = stringifyJson([tool, input]);
    const same = this.#byRequest.get(key);
    const progress = new CallProgressRelay();
    const taskId = same?.signature === signature ? same.taskId : null;
    const open = await this.#engine.call(caller, sid, { tool, input, taskId, onProgress: (update) => progress.update(update) });
    const known = open.taskId === null ? undefined : this.#byTask.get(open.taskId);
    if (known !== undefined || open.taskId === null) return this.#callOf(open, known?.progress ?? progress);
    const running = { key, signature, taskId: open.taskId, progress };
    this.#byTask.set(running.taskId, running);
    this.#byRequest.set(key, running);
    return this.#callOf(open, progress);
  }

  /** Resumes the call of a stream. Throws `invalid_request` if the session has no such call. */
  async resume(caller: Caller, sid: string, taskId: string): Promise<McpCall> {
    const open = await this.#engine.resumeCall(caller, sid, taskId);
    if (open === null) throw new PalestraError('invalid_request', { detail: 'Last-Event-ID: this session has no such call.' });
    return this.#callOf(open, this.#byTask.get(taskId)?.progress ?? new CallProgressRelay());
  }

  #callOf(open: OpenCall, progress: CallProgressRelay): McpCall {
    const ended = (outcome: CallOutcome) => {
      this.#forget(open.taskId);
      return outcome;
    };
    return {
      open,
      progress,
      abandon: () => {
        open.abandon();
        void open.outcome().then(ended);
      },
      result: async () => {
        const outcome = await open.outcome().then(ended);
        if (outcome.type === 'refused') throw errorOfOutcome(outcome);
        return resultOf(outcome, open.taskId);
      },
    };
  }

  #forget(taskId: string | null): void {
    const running = taskId === null ? undefined : this.#byTask.get(taskId);
    if (running === undefined) return;
    this.#byTask.delete(running.taskId);
    if (this.#byRequest.get(running.key) === running) this.#byRequest.delete(running.key);
  }
}
