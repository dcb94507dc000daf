import type { JsonObject } from '@palestra/protocol';
import type { Caller, HostedEnvironment, Recording, SecretMap, SessionEngine } from '@palestra/session';
import type { EnvironmentInfo, EnvironmentShape } from './environment-info.ts';
import type { RpcRequest } from '../wire/json-rpc.ts';
import type { Reply } from '../wire/client-replies.ts';

/** What an episode runs on; shared by all episodes of a connection. */
export interface EpisodeContext {
  engine: SessionEngine;
  caller: Caller;
  hosted: HostedEnvironment;
  info: EnvironmentInfo;
  shape: EnvironmentShape;
  recording: Recording | null;
  /** Given to every session. */
  secrets: SecretMap | null;
  /** How long a client waits for a slot, milliseconds. */
  slotTimeoutMs: number;
  connection: {
    /** The SID of the next session of the engine. */
    nextSid(): string;
    /** Aborts when the client has left: waits for a slot end by it. */
    readonly disconnected: AbortSignal;
  };
}

/**
 * What stands behind a connection: sessions of the engine, one after another. Methods are called one at a time and reject with `OpenEnvError`,
 * `PalestraError` or `RpcError`; `end` may come at any moment.
 */
export interface Episode {
  /** Session of the engine that is open, or holds a slot; null before the first. */
  readonly sid: string | null;
  readonly isOpen: boolean;
  /** Goes on with a session that is open, or holds a slot. `isStepped`: all of its calls were steps, none came by JSON-RPC. */
  resume(sid: string, isOpen: boolean, isStepped: boolean): void;
  /** Takes a slot before anything needs it. */
  reserve(): Promise<void>;
  reset(data: JsonObject): Promise<Reply>;
  step(action: JsonObject): Promise<Reply> | Reply;
  state(): Promise<Reply> | Reply;
  /** `tools/list` or `tools/call`: the JSON text of the result. */
  rpc(request: RpcRequest): Promise<string>;
  end(): Promise<void>;
}
