import type { JsonObject, JsonValue, TaskSpec } from '@palestra/protocol';
import type { BackendCall, ToolCallResult } from './backend-call.ts';
import type { TaskCatalogue } from './task-catalogue.port.ts';

/** One message of a client in the protocol of the environment's server. The engine passes it on without reading it. */
export interface NativeMessage {
  type: string;
  data?: JsonValue;
}

/** The tool call that a message makes, for the ledger and the trace. */
export interface NativeAction {
  tool: string;
  input: JsonObject;
}

/** The one reply of the server to a message. */
export interface NativeReply {
  /** JSON text as the server sent it. */
  reply: string;
  /** What the reply means for the ledger and the trace. `failed`: the text of an exception that the environment raised. */
  result: ToolCallResult | { failed: string };
}

/** Uploaded tasks, for servers whose clients can list tasks and choose one. */
export interface UploadedTasks extends TaskCatalogue {
  /** Throws `invalid_index` when no task has this id. */
  specById(id: string, signal: AbortSignal): Promise<TaskSpec>;
}

/** What a backend has in addition when its server speaks a protocol of clients: their messages and its replies pass through unchanged. */
export interface NativeServer {
  /** Name of the protocol, for example `openenv`. */
  readonly protocol: string;
  /** The same server with these tasks instead of its own. */
  withTasks(tasks: UploadedTasks): NativeServer;
}

/** An episode on such a server. */
export interface NativeSession {
  /**
   * Sends one message and resolves with its one reply. Messages go out one after another, in the order of the calls of this method.
   * `call`: set for a message that acts on the episode; such a message is never sent twice. Rejects with `session_lost` when the connection
   * broke while a message was on its way.
   */
  exchange(message: NativeMessage, call: Pick<BackendCall, 'taskId' | 'mayHaveRun'> | null, signal: AbortSignal): Promise<NativeReply>;
  /** The state that the environment itself reports. Rejects with `environment_failed` when it reports none. */
  state(signal: AbortSignal): Promise<JsonObject>;
  /** The same episode; a reset can name one of these tasks. */
  withTasks(tasks: UploadedTasks): NativeSession;
}
