import {
  type GroupCandidate,
  type JsonObject,
  type Message,
  type MessageBlock,
  PalestraError,
  type TaskSpec,
  type ToolsAnswer,
} from '@palestra/protocol';
import type { BackendCall, ToolCallResult } from './backend-call.ts';
import type { NativeServer, NativeSession } from './native.port.ts';
import type { TaskCatalogue } from './task-catalogue.port.ts';

/**
 * A running environment: an ORS or OpenEnv server at a URL, an MCP server, a child process. One object per environment version, cheap to
 * hold, safe to share between requests. Every method takes a signal; callers set deadlines. Errors are `PalestraError`s of the catalogue;
 * `backend_unreachable` means that nothing ran.
 */
export interface Backend extends TaskCatalogue {
  tools(env: string | null, signal: AbortSignal): Promise<ToolsAnswer>;
  /**
   * Opens an episode. Resolves when the environment's constructor (and toolset) succeeded; `setup()` continues in the background. The
   * returned reference is plain JSON and works on any API replica.
   */
  create(request: BackendCreate, signal: AbortSignal): Promise<BackendSessionRef>;
  /** A handle on an open episode; does no I/O. */
  session(ref: BackendSessionRef): BackendSession;
  close(): Promise<void>;
  /** Present where the environment's server speaks a protocol of clients: their messages are then passed through. */
  native?: NativeServer;
}

export type EpisodeTask = { kind: 'spec'; spec: TaskSpec } | { kind: 'index'; split: string; index: number };

/** The task of an episode on a backend without `native`. Throws `backend_invalid` when the request has none. */
export function taskOf({ task }: BackendCreate): EpisodeTask {
  if (task.kind === 'none') throw new PalestraError('backend_invalid', { detail: 'This environment opens no episode without a task.' });
  return task;
}

export interface BackendCreate {
  sid: string;
  env: string | null;
  /** `none`: the client resets the episode itself, by `native.exchange`; only for backends that have `native`. */
  task: EpisodeTask | { kind: 'none' };
  toolsetName: string | null;
  secrets: SecretMap;
  /** A process that died may have opened an episode under this SID. Delete that one first. */
  again?: boolean;
}

/** Decoded `X-Secrets` (docs/reference/ors.md); empty when the client sent none. */
export type SecretMap = { [key: string]: { value: string; allowed_domains?: string[] } };

/** What the backend needs to find the episode again. Stored with the session. */
export type BackendSessionRef = JsonObject;

export interface BackendSession {
  /**
   * Waits for setup and nothing else; rejects as `prompt`. Absent if the environment's server has no such request; the engine then requests
   * the prompt.
   */
  ready?(signal: AbortSignal): Promise<void>;
  /** Waits for setup. Rejects with `setup_failed`, with the server's text as detail, when setup failed. */
  prompt(signal: AbortSignal): Promise<MessageBlock[]>;
  /** Waits for setup, as `prompt`. Rejects with `messages_unsupported` when the environment's server has no such route. */
  messages(signal: AbortSignal): Promise<Message[]>;
  /** Shared tools, task tools and the toolset. Need not wait for setup. */
  taskTools(signal: AbortSignal): Promise<ToolsAnswer>;
  /**
   * Waits for setup and runs the tool once. Rejects with `ToolFailedError` when the tool raised. A result that is available at once may be
   * returned without a promise; a failure is always a rejected promise.
   */
  call(request: BackendCall, signal: AbortSignal): ToolCallResult | Promise<ToolCallResult>;
  scoreGroup(candidates: GroupCandidate[], taskId: string, signal: AbortSignal): Promise<string>;
  ping(signal: AbortSignal): Promise<void>;
  /** Cancels a running setup and runs teardown. Idempotent. */
  delete(signal: AbortSignal): Promise<void>;
  /** Present where `Backend.native` is. */
  native?: NativeSession;
}
