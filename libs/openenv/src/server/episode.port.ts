import type { JsonObject } from '@palestra/protocol';
import type { Caller, HostedEnvironment, Recording, SecretMap, SessionEngine } from '@palestra/session';
import type { EnvironmentInfo, EnvironmentShape } from './environment-info.ts';
import type { RpcRequest } from '../wire/json-rpc.ts';
import type { Reply } from '../wire/client-replies.ts';

/** Shared by all episodes of a connection. */
export interface EpisodeContext {
  engine: SessionEngine;
  caller: Caller;
  hosted: HostedEnvironment;
  info: EnvironmentInfo;
  shape: EnvironmentShape;
  recording: Recording | null;
  /** Passed to every session. */
  secrets: SecretMap | null;
  /** How long a client waits for a slot. */
  slotTimeoutMs: number;
  connection: {
    /** Returns the SID of the next engine session. */
    nextSid(): string;
    /** Aborts when the client disconnects, which ends a wait for a slot. */
    readonly disconnected: AbortSignal;
  };
}

/**
 * Engine sessions of a connection, one after another. Methods are called one at a time and reject with `OpenEnvError`, `PalestraError` or
 * `RpcError`. `end` can be called at any time.
 */
export interface Episode {
  /** The engine session that is open or holds a slot; null before the first. */
  readonly sid: string | null;
  readonly isOpen: boolean;
  /** Continues with a session that is open or holds a slot. `isStepped`: all of its calls were steps, none came by JSON-RPC. */
  resume(sid: string, isOpen: boolean, isStepped: boolean): void;
  /** Takes a slot before the first message. */
  reserve(): Promise<void>;
  reset(data: JsonObject): Promise<Reply>;
  step(action: JsonObject): Promise<Reply> | Reply;
  state(): Promise<Reply> | Reply;
  /** Handles `tools/list` and `tools/call`. Returns the JSON text of the result. */
  rpc(request: RpcRequest): Promise<string>;
  end(): Promise<void>;
}
