import type { JsonObject, JsonValue } from './json.ts';
import type { Split, ToolsAnswer } from './episode.schema.ts';
import type { MessageType } from './rollout-event.ts';

/**
 * What `/v1` answers, as TypeScript types shared by server, client and dashboard. Names that the `openreward` SDK and the
 * `orwd` CLI read are theirs (openreward-wire.md 3.1); the others are ours. All ids are strings, all times ISO 8601.
 */

export interface RunView {
  id: string;
  name: string;
  /** Name of the owning organisation: first segment of the page `/:org/runs/:run`. */
  org: string;
  num_rollouts: number;
  /** Mean of `reward` over scored rollouts; null without any. */
  avg_rollout_reward: number | null;
  /** Rollouts with a reward: the denominator of `avg_rollout_reward`. */
  num_scored: number;
  /** Rollouts that failed by no fault of the policy: unscored; out of `num_rollouts`. */
  num_errors: number;
  num_finished: number;
  /** Mean number of messages. */
  avg_rollout_length: number | null;
  /** Largest step; null when no step is known. */
  last_step: number | null;
  environments: string[];
  tags: string[];
  /** What its owner said over the normaliser (RunSettings). */
  settings: JsonObject;
  /** What step inference found, where steps were not told: samples per prompt `n`, `confidence` 0 to 1. */
  inference: JsonObject | null;
  /** Days without news after which its rollouts are erased; null = the organisation's rule. */
  retention_days: number | null;
  /** Counts up with every change of its figures. */
  version: string;
  created_at: string;
  updated_at: string;
  /** True when an event arrived in the last 10 s. */
  live: boolean;
}
/** A run as lists show it. */
export interface ListedRun extends RunView {
  /** Mean rewards over its steps, at most 100 points; null where nothing was scored. */
  sparkline: (number | null)[];
  /** Of its newest steps, at most 10; null when no step is known. */
  recent: {
    steps: number;
    rollouts: number;
    reward: number | null;
    reward_delta: number | null;
    pass_k: number | null;
    pass: number | null;
    zero_variance: number | null;
    broken_off: number | null;
    tokens: number | null;
  } | null;
  /** Of its rollouts. */
  phases: ('train' | 'eval' | 'unknown')[];
}
export interface RunList {
  runs: ListedRun[];
  total: number;
  /** For the next page; null = this is the last one. */
  next: string | null;
}

export interface RolloutRow {
  id: string;
  rolloutName: string | null;
  environment: string | null;
  split: string | null;
  variant: string | null;
  task_index: number | null;
  /** Id of its task in this organisation; null without any. */
  task: string | null;
  step: number | null;
  policy_step: number | null;
  /** Key of its group: samples of one task at one step. */
  group: string | null;
  sample: number | null;
  phase: 'train' | 'eval' | 'unknown';
  /** Canonical total (dashboard.md 14.2); null (never 0) when there is none. */
  reward: number | null;
  /** As the trainer reported it. */
  reward_reported: number | null;
  max_reward: number | null;
  num_messages: number;
  num_tool_calls: number;
  /** Tool results that are errors. */
  num_errors: number;
  turns: number;
  /** What the model wrote, and what tools answered, in tokens; estimates unless `provenance.tokens` is `reported`. */
  tokens: number | null;
  tool_tokens: number | null;
  bytes: number;
  /** Messages that must have been sent and are not here. */
  gaps: number;
  finished: boolean;
  /** `finished`, another canonical stop reason (dashboard.md 2.5), or null when unknown. */
  stop: string | null;
  /** Set when it failed by no fault of its policy: then `reward` is null, whatever rewards its messages have. */
  failure_class: 'environment' | 'infrastructure' | null;
  /** What is odd about it: `reward_mismatch`, `stamped_turn`, `nonfinite`, ... (libs/rollouts ROLLOUT_FLAGS) */
  flags: string[];
  /** How each field came to be known: `reported`, `parsed`, `inferred`, `unknown`. */
  provenance: Record<string, 'unknown' | 'inferred' | 'parsed' | 'reported'>;
  /** Whether its calls are those that our session ledger recorded; null = not looked at yet. */
  verified: 'unverified' | 'partial' | 'verified' | null;
  /** Sum of true tool latencies; null when no session was matched. */
  latency_ms: number | null;
  /** The integration that uploaded it. */
  source: string | null;
  model: string | null;
  /** The session that it happened in. */
  session: string | null;
  /** `live`, `complete`, `stale` or `empty` (dashboard.md 2.6). */
  state: 'live' | 'complete' | 'stale' | 'empty';
  created_at: string;
  updated_at: string;
}
export interface RolloutList {
  rollouts: RolloutRow[];
  /** Rollouts that match; counted up to `total_is` only. */
  total: number;
  /** `exact`, or `at_least`: counting stops where it gets expensive. */
  total_is: 'exact' | 'at_least';
  /** For the next page; null = this is the last one. */
  next: string | null;
  /** The query in its canonical spelling; null without one. */
  query: string | null;
}

export interface RolloutMessageView {
  eventId: string;
  index: number;
  timestamp: number;
  type: MessageType;
  content: string | null;
  contentReference: string | null;
  summary: string | null;
  name: string | null;
  callId: string | null;
  reward: number | null;
  isFinished: boolean;
  metadata: JsonObject;
  /** The client sent NaN or Infinity somewhere in this event. */
  nonfinite?: boolean;
  /** Only when `content` is cut: the whole body's size; read it at `/v1/rollouts/{id}/messages/{index}/body`. */
  body_bytes?: number;
}

export interface RolloutView extends RolloutRow {
  run: { id: string; name: string; org: string };
  metadata: JsonObject;
  task_spec: JsonValue;
  run_info: JsonObject | null;
  rollout_info: JsonObject | null;
  /** By which rule each field of `provenance` was found. */
  rules: Record<string, string>;
  /** Indexes that never arrived although later ones did. */
  missing_indexes: number[];
  messages: RolloutMessageView[];
}

/** What an owner has set for the sessions of an environment; the rest is as its author declared, else the server's default. */
export interface SessionPolicyView {
  heartbeat_timeout_s?: number;
  idle_timeout_s?: number;
  setup_timeout_s?: number;
  call_timeout_s?: number;
  silence_timeout_s?: number;
  /** Sessions at the same time per replica of the environment; null = no limit. */
  capacity?: number | null;
  deterministic?: boolean;
  idempotent_tools?: string[];
}

export interface EnvironmentView {
  id: string;
  owner: string;
  name: string;
  description: string;
  is_private: boolean;
  readme_content: string | null;
  has_github_connection: boolean;
  original_github_url: string | null;
  split_types: string[];
  total_task_count: number | null;
  compute_config: { cpu_count: number; mem_gb: number };
  max_concurrency: number;
  max_scale: number;
  /** Ours: null = nothing was set. */
  sessions: SessionPolicyView | null;
  created_at: string;
  updated_at: string;
  /** Ours: the number of its newest version; null for one without a server. */
  version: number | null;
  /** Ours: where it runs, and whether it answers now. */
  source: { kind: 'bundled' | 'remote' | 'openenv' | 'mcp' | 'none'; url?: string; command?: string[] };
  status: 'ready' | 'starting' | 'unreachable' | 'unlinked';
  status_detail: string | null;
}
export interface EnvironmentList {
  environments: EnvironmentView[];
  total: number;
}

/** Answer of `POST /v1/environments/{owner}/{name}/versions`; `owner/name@number` selects it. */
export interface EnvironmentVersionView {
  id: string;
  number: number;
  source: EnvironmentView['source'];
  created_at: string;
}

/** `GET /v1/environments/{owner}/{name}/discovery`: per variant its splits with counts, and tools. */
export interface EnvironmentDiscoveryView {
  variants: {
    name: string;
    is_default: boolean;
    splits: (Split & { num_tasks: number | null })[];
    tools: ToolsAnswer;
  }[];
  discovered_at: string;
}

/** `GET /v1/environments/{owner}/{name}/tasks?split=&variant=&start=&limit=` */
export interface TaskPageView {
  split: string;
  start: number;
  total: number | null;
  tasks: { index: number; task_spec: JsonValue }[];
}

export interface MeView {
  user: { id: string; name: string };
  org: { id: string; name: string };
}

export interface ApiKeyView {
  id: string;
  name: string;
  /** The member that the key belongs to. */
  user: string;
  /** First characters of the key, enough to recognise it. */
  prefix: string;
  scopes: string[];
  /** Sessions open at the same time; null = the default of the server. */
  max_sessions: number | null;
  created_at: string;
  /** null = never. */
  expires_at: string | null;
  last_used_at: string | null;
  revoked_at: string | null;
}

/** `POST /v1/exports/tasks`, `GET /v1/exports/{id}` */
export interface TaskExportView {
  id: string;
  state: 'running' | 'complete' | 'failed';
  environments: string[];
  split: string;
  format: 'parquet' | 'jsonl';
  prompt_format: 'text' | 'messages';
  /** Tasks to be written; null until they were counted. */
  total: number | null;
  written: number;
  failed: number;
  /** The first failures, with their reasons. */
  failures: { environment: string; task_index: number | null; reason: string }[];
  /** Why the export as a whole failed. */
  error: string | null;
  /** Bytes of the file. */
  size: number | null;
  /** Signed, for an hour; null until complete. */
  download_url: string | null;
  created_at: string;
  finished_at: string | null;
}

export type RolloutExportFormat = 'parquet' | 'rollouts-parquet' | 'jsonl' | 'openai' | 'hf' | 'sft' | 'preference' | 'curriculum';

/** An export of rollouts: files that the server writes in the background. */
export interface RolloutExportView {
  id: string;
  kind: 'rollouts';
  state: 'pending' | 'running' | 'complete' | 'failed';
  /** Name; null = all runs. */
  run: string | null;
  /** In its canonical spelling. */
  query: string;
  format: RolloutExportFormat;
  lens: string;
  redact: boolean;
  /** Rollouts of the query; null until counted, and where only reading them all would tell. */
  total: number | null;
  /** Rows in finished files. */
  written: number;
  /** Rows that are in no file: no word of the model, or questions that differ. */
  skipped: number;
  /** Finished files of data. */
  shards: number;
  bytes: number;
  /** Once complete; `url` is signed, for an hour. */
  files: { name: string; rows: number; size: number; url: string }[];
  /** Of the rollouts in finished files; null for tasks. */
  figures: {
    rollouts: number;
    scored: number;
    effective: number;
    reward_mean: number | null;
    reward_std: number | null;
    environments: Record<string, number>;
    runs: Record<string, number>;
    normalisers: Record<string, number>;
  } | null;
  /** Place in the order of arrival: later rollouts are not in it. */
  as_of: string;
  error: string | null;
  created_at: string;
  updated_at: string;
  finished_at: string | null;
}
