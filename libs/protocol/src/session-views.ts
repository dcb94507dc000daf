import type { JsonObject, JsonValue } from './json.ts';
import type { OutputBlock } from './episode.schema.ts';

/** What `/v1/sessions` and `/v1/slots` answer, shared by server, client and dashboard. Times are ISO 8601, durations name their unit. */

export type SessionStateName =
  | 'reserved'
  | 'starting'
  | 'ready'
  | 'restoring'
  | 'finished'
  | 'closed'
  | 'failed'
  | 'expired'
  | 'lost'
  | 'diverged';

/** Whose failure it was; `ok` is none. Only `ok` calls carry a reward. */
export type FailureClassName = 'ok' | 'policy' | 'environment' | 'infrastructure';

export interface SessionHolder {
  user: string | null;
  /** null for a browser session. */
  key: { id: string; name: string; prefix: string } | null;
}

/** The run that the session is written to as a rollout. */
export interface SessionRecordingView {
  run: string;
  rollout_id: string;
  name: string | null;
  step: number | null;
  split: string | null;
  task_index: number | null;
  metadata: JsonObject | null;
}

export interface SessionLastCall {
  tool: string;
  started_at: string;
  /** `running`, or how it ended. */
  state: CallState;
  failure_class: FailureClassName | null;
}

export interface SessionRow {
  sid: string;
  state: SessionStateName;
  /** It has not ended: it may hold a slot. */
  live: boolean;
  /** `owner/name`; null until the session is bound to one. */
  environment: string | null;
  /** Number of the environment's version; null as well when that was deleted. */
  environment_version: number | null;
  variant: string | null;
  /** The API process that holds its live connection; null where any process serves it. */
  owner_replica: string | null;
  holder: SessionHolder;
  created_at: string;
  /** Last ping or request. */
  last_seen_at: string;
  /** Last request other than a ping. */
  last_request_at: string;
  /** When it ends without further activity; null once ended. */
  expires_at: string | null;
  ended_at: string | null;
  heartbeat_timeout_s: number;
  idle_timeout_s: number;
  failure: { code: string; detail: string } | null;
  failure_class: FailureClassName | null;
  recording: SessionRecordingView | null;
  forked_from: { sid: string; at_call: number } | null;
  /** How it came by its slot; null where it never asked for one. */
  queue: { queued_at: string | null; waiting: boolean; admitted_at: string | null } | null;
  num_calls: number;
  last_call: SessionLastCall | null;
}
export interface SessionList {
  sessions: SessionRow[];
  /** For `?cursor=`; null on the last page. */
  next_cursor: string | null;
}

/** `GET /v1/sessions/{sid}` */
export interface SessionView extends SessionRow {
  /** What `/create` asked for, secrets hidden; null while reserved. */
  task: JsonObject | null;
  /** Its environment declares itself deterministic: the session outlives its process and can be forked. */
  deterministic: boolean;
  calls: { total: number; running: number } & Record<FailureClassName, number>;
  /** Sum over `ok` calls that were scored; null (never 0) when none was. */
  total_reward: number | null;
}

/** `GET /v1/sessions/{sid}/state`. */
export interface SessionStateView {
  /** `environment`: as its server answers OpenEnv's `state`; `ledger`: what this server knows of the episode. */
  source: 'environment' | 'ledger';
  state: JsonObject;
}

export type CallState = 'running' | 'result' | 'tool_failed' | 'refused';

/** One row of the call ledger. */
export interface SessionCallView {
  task_id: string;
  /** Rises with every call of a session. */
  seq: number;
  kind: 'call' | 'score_group';
  tool: string;
  /** The `at_call` of a fork that begins with the calls up to this one; null for a call that is no part of a replay. */
  at_call: number | null;
  /** JSON text as sent, secrets hidden; cut when `truncated`. */
  input: string;
  input_bytes: number;
  state: CallState;
  /** The tool's text, or how it failed; the beginning of the stored JSON when `truncated`; null while it runs. */
  text: string | null;
  /** The tool's output; null for failures and when `truncated`. */
  blocks: OutputBlock[] | null;
  result_bytes: number | null;
  /** Code of the error catalogue, of a refused call. */
  code: string | null;
  ok: boolean | null;
  reason: string | null;
  /** null (never 0) unless the call was scored. */
  reward: number | null;
  finished: boolean;
  failure_class: FailureClassName | null;
  started_at: string;
  ended_at: string | null;
  latency_ms: number | null;
  /** Its stream broke before its end was delivered, and its client has not come back yet. */
  undelivered: boolean;
  /** Input or result is longer than 64 kB; `GET /v1/sessions/{sid}/calls/{task_id}` has the whole. */
  truncated: boolean;
}
export interface SessionCallList {
  calls: SessionCallView[];
  /** For `?after=`; null when there is nothing more yet. */
  next_after: number | null;
}

/** Answer of `POST /v1/sessions/{sid}/fork`. */
export interface SessionForkView {
  sid: string;
  forked_from: string;
  at_call: number;
}

/** Body of `POST /v1/sessions`. */
export interface OpenSessionBody {
  /** `owner/name`, `owner/name@3`, or a bare name of the caller's own. */
  environment: string;
  variant?: string | null;
  /** The task by value... */
  task_spec?: JsonValue;
  /** ...or by index of a split. */
  split?: string;
  index?: number;
  toolset_name?: string | null;
  /** Name -> value, or value with the hosts that it may be sent to. */
  secrets?: Record<string, string | { value: string; allowed_domains?: string[] }>;
  run?: SessionRunBody | null;
  /** Chosen by a client that wants to repeat the request when its answer is lost. */
  sid?: string;
}
export interface SessionRunBody {
  name: string;
  rollout?: string | null;
  step?: number | null;
  split?: string | null;
  task_index?: number | null;
  metadata?: JsonObject | null;
}

/** A session that holds a slot, or waits for one. */
export interface SlotHolder {
  /** Like `run`: null for a session of another organisation, which is only counted here. */
  sid: string | null;
  state: SessionStateName;
  waiting: boolean;
  /** Name of the organisation. */
  org: string;
  /** null for another organisation. */
  holder: SessionHolder | null;
  owner_replica: string | null;
  created_at: string;
  last_seen_at: string;
  last_call: SessionLastCall | null;
  run: string | null;
  /** Where in its splits its task is; null for a task by value. */
  task: { split: string; index: number } | null;
}

/** The slots of one environment version. */
export interface SlotGroup {
  environment: string;
  /** null when the version was deleted. */
  version: number | null;
  /** The caller's organisation manages the environment, and so sees who else holds slots. */
  managed: boolean;
  /** Sessions that may be open at the same time on all replicas; null = no limit. */
  capacity: number | null;
  /** Slots that are taken, by anybody. */
  used: number;
  /** Sessions that wait for one, of anybody. */
  waiting: number;
  /** Oldest first; at most `limit` of the caller's organisation, and as many of others. */
  sessions: SlotHolder[];
}
export interface SlotList {
  environments: SlotGroup[];
}
