/**
 * The vocabularies of the API as plain lists, without zod, so that the dashboard can bundle them. In a list marked "stored" the position
 * of a word is its code in the database: append only.
 */

/** How a field of a rollout is known; a higher position is stronger evidence. Stored. */
export const PROVENANCES = ['unknown', 'inferred', 'parsed', 'reported'] as const;
export type Provenance = (typeof PROVENANCES)[number];

/** The fields of a rollout with a provenance. Stored: field k has the bits 2k and 2k + 1 of the packed number. */
export const PROVENANCE_FIELDS = ['step', 'group', 'sample', 'reward', 'stop', 'turns', 'tokens', 'phase', 'telemetry'] as const;
export type ProvenanceField = (typeof PROVENANCE_FIELDS)[number];

/** Why a rollout ended. Stored. */
export const STOP_REASONS = [
  'finished',
  'max_turns',
  'max_tokens',
  'context_length',
  'no_tool_call',
  'parse_error',
  'env_error',
  'infra_error',
  'timeout',
  'aborted',
  'cancelled',
  'unknown',
] as const;
export type StopReason = (typeof STOP_REASONS)[number];

/** Stop reasons of a limit. */
export const TRUNCATED_STOPS: readonly StopReason[] = ['max_turns', 'max_tokens', 'context_length'];

/** Stop reasons that say nothing about the policy. Its reward then counts neither in `effective` figures nor in training data. */
export const INTERRUPTED_STOPS = ['env_error', 'infra_error', 'timeout', 'aborted', 'cancelled'] as const satisfies readonly StopReason[];

/** Phases that a reader can choose. */
export const KNOWN_PHASES = ['train', 'eval'] as const;
export type KnownPhase = (typeof KNOWN_PHASES)[number];
/** Stored. */
export const PHASES = [...KNOWN_PHASES, 'unknown'] as const;
export type Phase = (typeof PHASES)[number];

/** State of a rollout by the age of its last event, because there is no end event. */
export const ROLLOUT_STATES = ['live', 'complete', 'stale', 'empty'] as const;
export type RolloutState = (typeof ROLLOUT_STATES)[number];

/** Failures without fault of the policy, which leave the rollout unscored. Stored. */
export const UNSCORED_FAILURES = ['environment', 'infrastructure'] as const;
export type UnscoredFailure = (typeof UNSCORED_FAILURES)[number];

/** Whether the calls of a rollout agree with the session ledger. Stored. */
export const VERIFICATIONS = ['unverified', 'partial', 'verified'] as const;
export type Verification = (typeof VERIFICATIONS)[number];

/** The integration that uploaded a rollout. slime and miles upload the same; `palestra` is a session recorded here. */
export const ROLLOUT_SOURCES = [
  'skyrl',
  'slime/miles',
  'tinker',
  'firehorse',
  'palestra',
  'verl',
  'trl',
  'prime-rl',
  'rllm',
  'generic',
] as const;
export type RolloutSource = (typeof ROLLOUT_SOURCES)[number];

export const MESSAGE_TYPES = ['reasoning', 'tool_call', 'tool_result', 'user_message', 'assistant_message', 'system_message'] as const;
export type MessageType = (typeof MESSAGE_TYPES)[number];

/** The source of the metric definitions: Palestra or a trainer. */
export const LENSES = ['canonical', 'skyrl', 'verl', 'trl', 'prime-rl', 'slime', 'tinker', 'rllm'] as const;
export type Lens = (typeof LENSES)[number];

/** The rollouts that a canonical figure counts. The first is the default. */
export const DENOMINATORS = ['effective', 'scored', 'all'] as const;
export type Denominator = (typeof DENOMINATORS)[number];

/** The kind of `x` of a curve. `window`: time of arrival, if no step is known. */
export const AXES = ['step', 'time', 'count', 'window'] as const;
export type Axis = (typeof AXES)[number];

/** Sort orders of lists. */
export const ROLLOUT_SORTS = ['created_at', 'reward', 'step', 'task', 'turns', 'messages'] as const;
export type RolloutSort = (typeof ROLLOUT_SORTS)[number];
export const GROUP_SORTS = ['step', 'mean', 'std', 'n'] as const;
export type GroupSort = (typeof GROUP_SORTS)[number];
/** Metrics by which runs are compared, with their definitions in docs/reference/metrics.md#comparisons. */
export const COMPARE_METRICS = ['reward_mean', 'success', 'turns', 'calls', 'tool_error', 'truncated'] as const;
export type CompareMetric = (typeof COMPARE_METRICS)[number];
export const COMPARE_SORTS = ['size', 'delta', 'first', 'other'] as const;
export type CompareSort = (typeof COMPARE_SORTS)[number];

/** Figures of a step that an alert compares with a value (docs/reference/alerts.md). */
export const ALERT_METRICS = ['reward_mean', 'success', 'tool_error', 'stop_share', 'failed', 'truncated'] as const;
export type AlertMetric = (typeof ALERT_METRICS)[number];

/** Verdicts of people on a rollout. */
export const VERDICTS = ['good', 'bad', 'exploit'] as const;
export type Verdict = (typeof VERDICTS)[number];

/** What a reviewer decides: a label of one rollout, or the better one of two. */
export const REVIEW_MODES = ['labels', 'pairs'] as const;
export type ReviewMode = (typeof REVIEW_MODES)[number];
/** Choices between the two rollouts of a pair. */
export const PAIR_CHOICES = ['a', 'b', 'tie'] as const;
export type PairChoice = (typeof PAIR_CHOICES)[number];

/** States of a session. libs/session defines the transitions. */
export const SESSION_STATES = [
  'reserved',
  'starting',
  'ready',
  'restoring',
  'finished',
  'closed',
  'failed',
  'expired',
  'lost',
  'diverged',
] as const;
export type SessionState = (typeof SESSION_STATES)[number];

/** A session in one of these states never changes again. */
export const ENDED_SESSION_STATES = ['closed', 'expired', 'lost', 'diverged'] as const satisfies readonly SessionState[];

/**
 * Whose failure a failed call was: the policy's (unknown tool, bad arguments), the environment's (tool or setup raised) or the
 * infrastructure's (timeout, lost backend, refused capacity). Infrastructure failures never count as reward 0. Stored.
 */
export const CALL_FAILURES = ['policy', 'environment', 'infrastructure'] as const;
/** Error texts of tools that begin with it are failures of the infrastructure, not of the environment (docs/environments.md). */
export const INFRASTRUCTURE_FAILURE = 'Infrastructure failure: ';
/** Failure class of any call; `ok` is no failure. Only `ok` calls have a reward. */
export const FAILURE_CLASSES = ['ok', ...CALL_FAILURES] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

/**
 * What shows why a rollout failed: a tool result that is an error, a call that could not be parsed, the trainer's text, or the stop reason
 * alone. Stored.
 */
export const CAUSE_KINDS = ['call', 'parse', 'reported', 'stop'] as const;
export type CauseKind = (typeof CAUSE_KINDS)[number];

export const CALL_STATES = ['running', 'result', 'tool_failed', 'refused'] as const;
export type CallState = (typeof CALL_STATES)[number];

/** Roles of members. An `owner` also manages settings, members and keys. */
export const ROLES = ['owner', 'member'] as const;
export type Role = (typeof ROLES)[number];

/** The permitted uses of an API key. */
export const KEY_SCOPES = ['sessions', 'environments', 'rollouts', 'keys'] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

export const SPLIT_TYPES = ['train', 'validation', 'test'] as const;
export type SplitType = (typeof SPLIT_TYPES)[number];

export const ROLLOUT_EXPORT_FORMATS = [
  'parquet',
  'rollouts-parquet',
  'jsonl',
  'openai',
  'hf',
  'sft',
  'preference',
  'preference-parquet',
  'labels',
  'labels-parquet',
  'curriculum',
] as const;
export type RolloutExportFormat = (typeof ROLLOUT_EXPORT_FORMATS)[number];

/** Formats of files with rollouts that `palestra rollouts import` reads. */
export const IMPORT_FORMATS = ['openai', 'inspect', 'verifiers', 'palestra'] as const;
export type ImportFormat = (typeof IMPORT_FORMATS)[number];

/** Formats of task files. */
export const TASK_FILE_FORMATS = ['jsonl', 'parquet'] as const;
export type TaskFileFormat = (typeof TASK_FILE_FORMATS)[number];

/** Rows of task files, by the trainer whose loader reads them (docs/exports.md#tasks). */
export const TASK_ROW_FORMATS = [
  'skyrl',
  'trl',
  'verl',
  'slime',
  'miles',
  'tinker',
  'openrlhf',
  'areal',
  'nemo-gym',
  'rllm',
  'inspect',
  'messages',
] as const;
export type TaskRowFormat = (typeof TASK_ROW_FORMATS)[number];
/** Keys of tasks to leave out, in one request. Larger evaluation sets are named by their split. */
export const MAX_EXCLUDED_KEYS = 10_000;
/** Those whose loaders read JSON lines only. */
export const JSON_LINES_ROW_FORMATS: readonly TaskRowFormat[] = ['nemo-gym', 'inspect'];

/** Events of `/v1/stream`. */
export const STREAM_EVENTS = ['run', 'counters', 'dirty', 'reset', 'advisory', 'rollout'] as const;
export type StreamEvent = (typeof STREAM_EVENTS)[number];

/** The demo of an empty server: the names of its runs, their tag, and the name of its environment in the namespace of its organisation. */
export const DEMO_RUNS = ['demo-learner', 'demo-baseline'] as const;
export const DEMO_TAG = 'demo';
export const DEMO_ENVIRONMENT = 'demo-ctf';

/** What a share link shows: one rollout, the overview of a run, rollouts of a run that match, or a comparison of runs or rollouts. */
export const SHARE_KINDS = ['rollout', 'run', 'query', 'runs', 'rollouts'] as const;
export type ShareKind = (typeof SHARE_KINDS)[number];

/** Actions that the audit log records. */
export const AUDIT_ACTIONS = [
  'sign_in',
  'sign_out',
  'sign_in_link.create',
  'browser_session.end',
  'key.create',
  'key.revoke',
  'member.add',
  'member.change',
  'member.remove',
  'organisation.create',
  'organisation.change',
  'environment.create',
  'environment.change',
  'environment.deploy',
  'environment.report',
  'environment.hosting',
  'environment.promote',
  'environment.rollback',
  'environment.restart',
  'environment.delete',
  'environment.secret_set',
  'environment.secret_delete',
  'environment.git_link',
  'environment.git_unlink',
  'environment.git_secret',
  'deploy.create',
  'deploy.cancel',
  'task_set.publish',
  'task_set.delete',
  'file.delete',
  'share.create',
  'share.delete',
  'run.delete',
  'demo.delete',
  'rollout.delete',
  'annotation.bulk',
  'annotation.delete',
  'view.delete',
  'review_queue.create',
  'review_queue.close',
  'review_queue.delete',
  'alert.create',
  'alert.change',
  'alert.delete',
  'webhook.create',
  'webhook.change',
  'webhook.rotate',
  'webhook.delete',
  'export.create',
  'export.delete',
  'audit.export',
  'audit.expire',
  'secret.rotate',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];
