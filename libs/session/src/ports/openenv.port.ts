import type { JsonObject, JsonValue } from '@palestra/protocol';
import type { BackendCall, ToolCallResult } from './backend.port.ts';

/** One message of OpenEnv's socket (openenv-wire.md section 3), `close` left out. */
export type OpenEnvMessage =
  | { type: 'reset'; data: JsonObject }
  | { type: 'step'; data: JsonObject }
  | { type: 'state' }
  /** A JSON-RPC request (section 8.1). */
  | { type: 'mcp'; data: JsonValue };

/** The server's one reply, and what it means to the ledger and the trace. */
export interface OpenEnvExchange {
  /** JSON text of `{"type","data"}` as the server sent it: `observation`, `state`, `mcp` or `error`. */
  reply: string;
  /** A reply that says that the environment raised is `{ failed }`, the text of its exception. */
  result: ToolCallResult | { failed: string };
}

export interface OpenEnvShape {
  /** A: stateful HTTP and one episode a server; C: sockets; D: from 0.4, the Task API; E: from 0.5, sockets attach to HTTP sessions. */
  generation: 'A' | 'C' | 'D' | 'E';
  /** `production` servers have no `/reset`, `/step`, `/state`. */
  mode: 'simulation' | 'production';
  /** `GET /schema` as the server sent it; made up from what is known for generation A. */
  schema: JsonObject;
  /** `GET /metadata` as the server sent it. */
  metadata: JsonObject;
  /** Its tools are called by `call_tool` actions; false: an action is an object of the published schema. */
  toolActions: boolean;
}

/** What a backend whose server speaks OpenEnv offers beyond what every backend does, for OpenEnv clients: what it says, unchanged. */
export interface OpenEnvUpstream {
  /** Asked once and kept for a minute. Throws `backend_unreachable`, `backend_invalid`. */
  shape(signal: AbortSignal): Promise<OpenEnvShape>;
  /**
   * One of the server's stateless HTTP routes, path without prefix (`/schema`, `/reset`, `/guess/splits`), passed on and answered as it is,
   * whatever its status. Not sent twice, unless it is a GET.
   */
  relay(
    request: { method: 'GET' | 'POST'; path: string; body: Buffer | null; contentType: string | null },
    signal: AbortSignal,
  ): Promise<{ status: number; body: Buffer; contentType: string }>;
}

/** An episode on such a server. */
export interface OpenEnvSession {
  /**
   * One message to the server, its one reply. Messages of a session are sent one after another, in the order of the calls of this method. Rejects
   * with `session_lost` when the connection broke with the message on its way; never sends a `step` twice.
   */
  exchange(message: OpenEnvMessage, work: Pick<BackendCall, 'taskId' | 'mayHaveRun'> | null, signal: AbortSignal): Promise<OpenEnvExchange>;
}
