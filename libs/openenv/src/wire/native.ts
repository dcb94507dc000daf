import type { JsonObject, JsonValue } from '@palestra/protocol';
import type { Backend, BackendCall, NativeReply, NativeServer, NativeSession } from '@palestra/session';

/** One message of OpenEnv's socket (docs/reference/openenv.md), without `close`. */
export type OpenEnvMessage =
  | { type: 'reset'; data: JsonObject }
  | { type: 'step'; data: JsonObject }
  | { type: 'state' }
  /** A JSON-RPC request. */
  | { type: 'mcp'; data: JsonValue };

export interface OpenEnvShape {
  /** A: stateful HTTP and one episode a server; C: sockets; D: from 0.4, the Task API; E: from 0.5, sockets attach to HTTP sessions. */
  generation: 'A' | 'C' | 'D' | 'E';
  /** `production` servers have no `/reset`, `/step`, `/state`. */
  mode: 'simulation' | 'production';
  /** `GET /schema` as the server sent it; for generation A derived from what is known. */
  schema: JsonObject;
  /** `GET /metadata` as the server sent it. */
  metadata: JsonObject;
  /** Its tools are called by `call_tool` actions; false: an action is an object of the published schema. */
  toolActions: boolean;
}

export interface RelayRequest {
  method: 'GET' | 'POST';
  /** Path and query below the address of the environment, e.g. `/schema`. */
  path: string;
  body: Buffer | null;
  contentType: string | null;
}

export interface RelayAnswer {
  status: number;
  body: Buffer;
  contentType: string;
}

/** A server that speaks OpenEnv: OpenEnv clients get its own answers. */
export interface OpenEnvUpstream extends NativeServer {
  /** Read once and kept for a minute. Throws `backend_unreachable`, `backend_invalid`. */
  shape(signal: AbortSignal): Promise<OpenEnvShape>;
  /** Passes a request to one of the server's stateless HTTP routes and returns its answer, whatever the status. Only a GET is repeated. */
  relay(request: RelayRequest, signal: AbortSignal): Promise<RelayAnswer>;
}

/** An episode on such a server. */
export interface OpenEnvSession extends NativeSession {
  exchange(message: OpenEnvMessage, call: Pick<BackendCall, 'taskId' | 'mayHaveRun'> | null, signal: AbortSignal): Promise<NativeReply>;
}

/** The `protocol` of an `OpenEnvUpstream`. */
export const OPENENV = 'openenv';

/** The server of a backend if it speaks OpenEnv, else null. */
export function openEnvUpstreamOf({ native }: Backend): OpenEnvUpstream | null {
  return native?.protocol === OPENENV ? (native as OpenEnvUpstream) : null;
}
