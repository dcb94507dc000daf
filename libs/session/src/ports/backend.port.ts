import {
  type GroupCandidate,
  type JsonObject,
  type Message,
  type MessageBlock,
  PalestraError,
  type Split,
  type TaskSpec,
  type ToolErrorReason,
  type ToolsAnswer,
} from '@palestra/protocol';
import type { OpenEnvUpstream, OpenEnvSession } from './openenv.port.ts';

/**
 * An environment that somebody runs: an ORS or OpenEnv server at a URL, an MCP server, a child process. One object per
 * environment version, cheap to hold, safe to share between requests. Every method takes a signal; a deadline is the
 * caller's. Errors are `PalestraError`s of the catalogue; `backend_unreachable` promises that nothing ran.
 */
export interface Backend {
  /** Names of the environment classes (variants), lower case, the first is the default. */
  environments(signal: AbortSignal): Promise<string[]>;
  tools(env: string | null, signal: AbortSignal): Promise<ToolsAnswer>;
  splits(env: string | null, signal: AbortSignal): Promise<Split[]>;
  /** Every task of a split. Throws `tasks_not_listable` where the environment has only the index API; see `everyTask`. */
  tasks(env: string | null, split: string, signal: AbortSignal): Promise<TaskSpec[]>;
  numTasks(env: string | null, split: string, signal: AbortSignal): Promise<number>;
  task(env: string | null, split: string, index: number, signal: AbortSignal): Promise<TaskSpec>;
  /** `start`, `stop` as on the wire: null = default, negatives count from the end, clamped, stop exclusive. */
  taskRange(env: string | null, split: string, start: number | null, stop: number | null, signal: AbortSignal): Promise<TaskSpec[]>;
  /**
   * Opens an episode: answers when the environment's constructor (and toolset) succeeded; `setup()` goes on in the
   * background. The returned reference is plain JSON and works on any API replica.
   */
  create(request: BackendCreate, signal: AbortSignal): Promise<BackendSessionRef>;
  /** A handle on an open episode; does no I/O. */
  session(ref: BackendSessionRef): BackendSession;
  close(): Promise<void>;
  /** Present where the environment's server speaks OpenEnv: OpenEnv clients are then given what it says, unchanged. */
  openenv?: OpenEnvUpstream;
}

export type EpisodeTask = { kind: 'spec'; spec: TaskSpec } | { kind: 'index'; split: string; index: number };

/** The task of an episode on a backend without `openenv`. */
export function taskOf({ task }: BackendCreate): EpisodeTask {
  if (task.kind === 'none') throw new PalestraError('backend_invalid', { detail: 'This environment opens no episode without a task.' });
  return task;
}

export interface BackendCreate {
  sid: string;
  env: string | null;
  /** `none`: the client resets the episode itself, by `openenv.exchange`; only for backends that have `openenv`. */
  task: EpisodeTask | { kind: 'none' };
  toolsetName: string | null;
  secrets: SecretMap;
  /** A process that died may have opened an episode under this SID: it is to be forgotten first. */
  again?: boolean;
}

/** Decoded `X-Secrets` (openreward-wire.md 2.10); empty when the client sent none. */
export type SecretMap = { [key: string]: { value: string; allowed_domains?: string[] } };

/** Whatever the backend needs to find the episode again; stored with the session. */
export type BackendSessionRef = JsonObject;

export interface BackendSession {
  /**
   * Waits for setup and nothing else; rejects as `prompt`. Left out where the environment's server has no such question: the
   * engine then asks for the prompt.
   */
  ready?(signal: AbortSignal): Promise<void>;
  /** Waits for setup. Rejects with `setup_failed` (detail as the environment's server words it) on a failed one. */
  prompt(signal: AbortSignal): Promise<MessageBlock[]>;
  /** As prompt; `messages_unsupported` when the environment's server has no such route. */
  messages(signal: AbortSignal): Promise<Message[]>;
  /** Shared tools + task tools + toolset. Need not wait for setup. */
  taskTools(signal: AbortSignal): Promise<ToolsAnswer>;
  /**
   * Waits for setup, runs the tool once. A tool that raised rejects with `ToolFailedError`. One that answers at once needs no promise; what fails is
   * always a promise that rejects.
   */
  call(request: BackendCall, signal: AbortSignal): ToolCallResult | Promise<ToolCallResult>;
  scoreGroup(candidates: GroupCandidate[], taskId: string, signal: AbortSignal): Promise<string>;
  ping(signal: AbortSignal): Promise<void>;
  /** Cancels a running setup, runs teardown; idempotent. */
  delete(signal: AbortSignal): Promise<void>;
  /** Present where `Backend.openenv` is. */
  openenv?: OpenEnvSession;
}

export interface BackendCall {
  tool: string;
  input: JsonObject;
  /** Ledger id of this call. */
  taskId: string;
  /**
   * Set when the API that ran this call died: the id under which the environment's server runs it. Resume it (never run it
   * again); reject with `session_lost` when its outcome cannot be known.
   */
  upstreamTaskId?: string | null;
  /**
   * An earlier process began this call, and how far it came is unknown: run it only where the environment's server can tell whether
   * it has run it (then by the ledger id), else reject with `session_lost`.
   */
  mayHaveRun?: boolean;
  /** To be told as soon as the environment's server has given the call an id that it can be resumed by, also after a restart. */
  onUpstreamTaskId?: (upstreamTaskId: string) => void;
  /** To be told how far the tool has come, where its server says so. */
  onProgress?: (progress: CallProgress) => void;
}

/** How far a running call has come, in the words of its tool. */
export interface CallProgress {
  /** Grows with every report; of `total`, where that is known. */
  progress: number;
  total?: number;
  message?: string;
}

/**
 * A finished call. `text` is the JSON text of a `RunToolOutput` exactly as clients get it (numbers and key order of the
 * environment's server kept; nullable keys and `reason` supplied where an older server leaves them out).
 */
export interface ToolCallResult {
  text: string;
  ok: boolean;
  /** null when ok */
  reason: ToolErrorReason | null;
  reward: number | null;
  finished: boolean;
}

/** The tool itself raised: sent as SSE `event: error` with this message (no type name, openreward-wire.md 2.4). */
export class ToolFailedError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'ToolFailedError';
  }
}
