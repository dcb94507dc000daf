// Written by `npm run generate` from docs/openapi.json; do not edit.
export interface ApiAnswers {
"DELETE /v1/annotations/{id}": {
deleted: true
}
"GET /v1/annotations": {
annotations: {
id: string
rollout: string
from_index: (number | null)
to_index: (number | null)
verdict: (("good" | "bad" | "exploit") | null)
score: (number | null)
tag: (string | null)
note: (string | null)
/**
 * Name of who wrote it.
 */
author: string
created_at: string
}[]
next: (string | null)
}
"POST /v1/annotations": {
id: string
rollout: string
from_index: (number | null)
to_index: (number | null)
verdict: (("good" | "bad" | "exploit") | null)
score: (number | null)
tag: (string | null)
note: (string | null)
/**
 * Name of who wrote it.
 */
author: string
created_at: string
}
"GET /v1/audit": {
events: {
id: string
at: string
action: string
/**
 * It was tried, and not allowed: a sign-in that failed.
 */
refused: boolean
/**
 * Name of the user at that time; null: an unknown caller, or the service itself.
 */
actor: ({
id: string
name: (string | null)
} | null)
/**
 * The API key that it was done with, also by a browser that signed in with it.
 */
key: ({
id: string
name: (string | null)
} | null)
target: ({
id: (string | null)
name: (string | null)
} | null)
details: {
[k: string]: unknown
}
/**
 * Of the client, as the service sees it; empty: the service itself.
 */
address: string
user_agent: string
}[]
next_cursor: (string | null)
}
"GET /v1/billing/api-usage": unknown
"DELETE /v1/browser-sessions/{id}": {
deleted: true
}
"GET /v1/browser-sessions": {
browser_sessions: {
id: string
/**
 * The member who is signed in
 */
user: string
user_agent: string
scopes: string[]
/**
 * The key that opened it, with which it ends; null for a sign-in link
 */
key: ({
id: string
name: string
} | null)
created_at: string
expires_at: string
}[]
}
"GET /v1/compare/tasks": {
phase: (("train" | "eval" | "unknown") | null)
den: ("scored" | "all" | "effective")
/**
 * In the order that was asked for.
 */
runs: {
id: string
name: string
/**
 * With a scored rollout in the scope.
 */
tasks: number
}[]
/**
 * Tasks that every run scored in the scope: those of the table.
 */
common: number
/**
 * Every run but the first, against the first.
 */
pairs: {
run: string
/**
 * Mean over the common tasks of (mean reward of this run − that of the first).
 */
mean: (number | null)
/**
 * 95 %, Student-t over the differences of tasks; null below two tasks.
 */
low: (number | null)
high: (number | null)
better: number
worse: number
/**
 * Tasks whose means differ by at most 1e-9.
 */
equal: number
}[]
tasks: {
task: {
id: string
key: string
index: (number | null)
split: (string | null)
}
environment: (string | null)
runs: {
/**
 * Reward over the rollouts of the task that `den` counts.
 */
mean: number
/**
 * How many those are.
 */
scored: number
/**
 * Among the scored ones.
 */
successes: number
}[]
}[]
next: (string | null)
}
"GET /v1/diff": {
a: {
id: string
rolloutName: (string | null)
environment: (string | null)
split: (string | null)
variant: (string | null)
task_index: (number | null)
/**
 * Id of its task in this organisation; null without any.
 */
task: (string | null)
step: (number | null)
policy_step: (number | null)
/**
 * Key of its group: samples of one task at one step.
 */
group: (string | null)
sample: (number | null)
phase: ("train" | "eval" | "unknown")
/**
 * Sum of message rewards, else the reported total unless that is 0; null without either, and for a failed rollout.
 */
reward: (number | null)
/**
 * As the trainer reported it.
 */
reward_reported: (number | null)
max_reward: (number | null)
num_messages: number
num_tool_calls: number
/**
 * Tool results that are errors.
 */
num_errors: number
turns: number
/**
 * Of what the model wrote; an estimate unless `provenance.tokens` is `reported`.
 */
tokens: (number | null)
/**
 * Of what tools answered; an estimate as `tokens` is.
 */
tool_tokens: (number | null)
bytes: number
/**
 * Messages that must have been sent and did not come; 0 until nothing of the rollout came for PALESTRA_GAP_GRACE_S.
 */
gaps: number
finished: boolean
/**
 * Why it ended: `finished` or another stop reason; null when unknown.
 */
stop: (string | null)
/**
 * Set when it failed by no fault of its policy: it is unscored then, whatever rewards its messages have.
 */
failure_class: (("environment" | "infrastructure") | null)
/**
 * What is odd about it: `reward_mismatch`, `stamped_turn`, `nonfinite`, ...
 */
flags: string[]
/**
 * How each field came to be known.
 */
provenance: {
[k: string]: "unknown" | "inferred" | "parsed" | "reported"
}
/**
 * Whether its calls are those of our session ledger; null: not compared yet.
 */
verified: (("unverified" | "partial" | "verified") | null)
/**
 * Sum of true tool latencies, from the ledger; null when no session was matched.
 */
latency_ms: (number | null)
/**
 * The integration that uploaded it.
 */
source: (string | null)
model: (string | null)
/**
 * The session that it happened in.
 */
session: (string | null)
state: ("live" | "complete" | "stale" | "empty")
created_at: string
updated_at: string
}
b: {
id: string
rolloutName: (string | null)
environment: (string | null)
split: (string | null)
variant: (string | null)
task_index: (number | null)
/**
 * Id of its task in this organisation; null without any.
 */
task: (string | null)
step: (number | null)
policy_step: (number | null)
/**
 * Key of its group: samples of one task at one step.
 */
group: (string | null)
sample: (number | null)
phase: ("train" | "eval" | "unknown")
/**
 * Sum of message rewards, else the reported total unless that is 0; null without either, and for a failed rollout.
 */
reward: (number | null)
/**
 * As the trainer reported it.
 */
reward_reported: (number | null)
max_reward: (number | null)
num_messages: number
num_tool_calls: number
/**
 * Tool results that are errors.
 */
num_errors: number
turns: number
/**
 * Of what the model wrote; an estimate unless `provenance.tokens` is `reported`.
 */
tokens: (number | null)
/**
 * Of what tools answered; an estimate as `tokens` is.
 */
tool_tokens: (number | null)
bytes: number
/**
 * Messages that must have been sent and did not come; 0 until nothing of the rollout came for PALESTRA_GAP_GRACE_S.
 */
gaps: number
finished: boolean
/**
 * Why it ended: `finished` or another stop reason; null when unknown.
 */
stop: (string | null)
/**
 * Set when it failed by no fault of its policy: it is unscored then, whatever rewards its messages have.
 */
failure_class: (("environment" | "infrastructure") | null)
/**
 * What is odd about it: `reward_mismatch`, `stamped_turn`, `nonfinite`, ...
 */
flags: string[]
/**
 * How each field came to be known.
 */
provenance: {
[k: string]: "unknown" | "inferred" | "parsed" | "reported"
}
/**
 * Whether its calls are those of our session ledger; null: not compared yet.
 */
verified: (("unverified" | "partial" | "verified") | null)
/**
 * Sum of true tool latencies, from the ledger; null when no session was matched.
 */
latency_ms: (number | null)
/**
 * The integration that uploaded it.
 */
source: (string | null)
model: (string | null)
/**
 * The session that it happened in.
 */
session: (string | null)
state: ("live" | "complete" | "stale" | "empty")
created_at: string
updated_at: string
}
/**
 * Actions side by side; aligned where tool and arguments are the same.
 */
rows: {
a: ({
index: number
kind: ("call" | "answer")
tool: (string | null)
error: boolean
reward: (number | null)
} | null)
b: ({
index: number
kind: ("call" | "answer")
tool: (string | null)
error: boolean
reward: (number | null)
} | null)
same: boolean
}[]
/**
 * First row that is not the same on both sides.
 */
first_divergence: (number | null)
same: number
/**
 * Longer rollouts are compared by their first 2 000 actions.
 */
truncated: boolean
}
"GET /v1/environment-usage": {
environments: {
environment_id: (string | null)
/**
 * As rollouts name one that is not registered here.
 */
environment: (string | null)
runs: number
last_at: (string | null)
rollouts: number
scored: number
/**
 * Over the scored ones; null without any.
 */
reward_mean: (number | null)
}[]
/**
 * By `owner/name`.
 */
live_sessions: {
[k: string]: number
}
}
"GET /v1/environments//{name}/required-secrets": {
secrets: string[]
}
"GET /v1/environments/{owner}/{name}/discovery": {
variants: {
name: string
is_default: boolean
splits: {
name: string
type: ("train" | "validation" | "test")
num_tasks: (number | null)
}[]
/**
 * As `GET /{env}/tools` answers.
 */
tools: {
[k: string]: unknown
}
}[]
discovered_at: string
}
"GET /v1/environments/{owner}/{name}/required-secrets": {
secrets: string[]
}
"GET /v1/environments/{owner}/{name}/runs": {
runs: {
id: string
name: string
last_step: (number | null)
updated_at: string
rollouts: number
scored: number
/**
 * Over the scored ones; null without any.
 */
reward_mean: (number | null)
}[]
}
"GET /v1/environments/{owner}/{name}/task-difficulty": {
tasks: {
task_index: number
avg_reward: number
min_reward: number
max_reward: number
num_rollouts: number
/**
 * Of those whose reward counts as a success in their run.
 */
num_solved: number
response_chars: {
mean: number
p1: number
p10: number
p25: number
p50: number
p75: number
p90: number
p99: number
}
split: (string | null)
variant: (string | null)
}[]
}
"POST /v1/environments/{owner}/{name}/task-sets/{id}/publish": {
task_set: {
id: string
state: ("draft" | "published")
/**
 * SHA-256 over its splits and tasks in canonical form; null: a draft.
 */
content_hash: (string | null)
created_at: string
published_at: (string | null)
/**
 * Versions of the environment that have these tasks.
 */
versions: number[]
splits: {
name: string
type: ("train" | "validation" | "test")
num_tasks: number
/**
 * Of the file.
 */
bytes: number
/**
 * SHA-256 of its tasks in canonical form.
 */
content_hash: string
}[]
}
/**
 * The version of the environment that has these tasks.
 */
version: number
/**
 * false: the newest version had exactly these tasks already.
 */
created: boolean
}
"PUT /v1/environments/{owner}/{name}/task-sets/{id}/splits/{split}": {
name: string
type: ("train" | "validation" | "test")
num_tasks: number
/**
 * Of the file.
 */
bytes: number
/**
 * SHA-256 of its tasks in canonical form.
 */
content_hash: string
/**
 * Columns beside task_spec, prompt and id: they mean nothing.
 */
ignored_columns: string[]
}
"DELETE /v1/environments/{owner}/{name}/task-sets/{id}": {
deleted: true
id: string
}
"GET /v1/environments/{owner}/{name}/task-sets": {
/**
 * Newest first. Drafts only for owners.
 */
task_sets: {
id: string
state: ("draft" | "published")
/**
 * SHA-256 over its splits and tasks in canonical form; null: a draft.
 */
content_hash: (string | null)
created_at: string
published_at: (string | null)
/**
 * Versions of the environment that have these tasks.
 */
versions: number[]
splits: {
name: string
type: ("train" | "validation" | "test")
num_tasks: number
/**
 * Of the file.
 */
bytes: number
/**
 * SHA-256 of its tasks in canonical form.
 */
content_hash: string
}[]
}[]
}
"POST /v1/environments/{owner}/{name}/task-sets": {
id: string
state: ("draft" | "published")
/**
 * SHA-256 over its splits and tasks in canonical form; null: a draft.
 */
content_hash: (string | null)
created_at: string
published_at: (string | null)
/**
 * Versions of the environment that have these tasks.
 */
versions: number[]
splits: {
name: string
type: ("train" | "validation" | "test")
num_tasks: number
/**
 * Of the file.
 */
bytes: number
/**
 * SHA-256 of its tasks in canonical form.
 */
content_hash: string
}[]
}
"GET /v1/environments/{owner}/{name}/tasks": {
split: string
start: number
total: (number | null)
tasks: {
index: number
task_spec: unknown
}[]
}
"GET /v1/environments/{owner}/{name}/variants": {
id: string
name: string
}[]
"GET /v1/environments/{owner}/{name}/versions": {
versions: {
id: string
number: number
created_at: string
/**
 * Address and command only for its owners.
 */
source: {
kind: ("bundled" | "remote" | "openenv" | "mcp")
url?: string
command?: string[]
}
/**
 * Its uploaded tasks; null: its server has the tasks.
 */
task_set: (string | null)
/**
 * When its server was last asked what it offers; null: never.
 */
discovered_at: (string | null)
variants: string[]
/**
 * Of the default variant.
 */
tools: string[]
/**
 * Of the default variant; null when its server does not say.
 */
num_tasks: (number | null)
}[]
}
"POST /v1/environments/{owner}/{name}/versions": {
id: string
number: number
source: {
kind: ("bundled" | "remote" | "openenv" | "mcp")
url?: string
command?: string[]
}
created_at: string
}
"DELETE /v1/environments/{owner}/{name}": {
deleted: true
owner: string
name: string
}
"GET /v1/exports/{id}/file": unknown
"GET /v1/exports/{id}/files/{name}": unknown
"DELETE /v1/exports/{id}": {
deleted: boolean
}
"GET /v1/exports/{id}": ({
id: string
state: ("running" | "complete" | "failed")
environments: string[]
split: string
format: ("jsonl" | "parquet")
prompt_format: ("text" | "messages")
/**
 * Tasks to be written; null until they were counted
 */
total: (number | null)
written: number
failed: number
/**
 * The first failures, with their reasons
 */
failures: {
environment: string
task_index: (number | null)
reason: string
}[]
/**
 * Why the export as a whole failed
 */
error: (string | null)
/**
 * Bytes of the file
 */
size: (number | null)
/**
 * Signed, for an hour; null until complete
 */
download_url: (string | null)
created_at: string
finished_at: (string | null)
} | {
id: string
kind: "rollouts"
state: ("pending" | "running" | "complete" | "failed")
/**
 * null: all runs
 */
run: (string | null)
/**
 * In its canonical spelling
 */
query: string
format: ("parquet" | "rollouts-parquet" | "jsonl" | "openai" | "hf" | "sft" | "preference" | "curriculum")
lens: ("canonical" | "skyrl" | "verl" | "trl" | "prime-rl" | "slime" | "tinker" | "rllm")
redact: boolean
/**
 * Rollouts of the query; null until counted, and for queries with regexes, pairs and tasks
 */
total: (number | null)
/**
 * Rows in finished files
 */
written: number
/**
 * Rows that are in no file: no word of the model, or questions that differ
 */
skipped: number
/**
 * Finished files of data
 */
shards: number
bytes: number
/**
 * Once complete
 */
files: {
name: string
rows: number
size: number
/**
 * Signed, for an hour
 */
url: string
}[]
/**
 * Of the rollouts in finished files; null for tasks
 */
figures: ({
rollouts: number
scored: number
effective: number
reward_mean: (number | null)
reward_std: (number | null)
/**
 * By owner/name@version
 */
environments: {
[k: string]: number
}
runs: {
[k: string]: number
}
normalisers: {
[k: string]: number
}
} | null)
/**
 * Place in the order of arrival: later rollouts are not in it
 */
as_of: string
error: (string | null)
created_at: string
updated_at: string
finished_at: (string | null)
})
"POST /v1/exports/tasks": {
id: string
state: ("running" | "complete" | "failed")
environments: string[]
split: string
format: ("jsonl" | "parquet")
prompt_format: ("text" | "messages")
/**
 * Tasks to be written; null until they were counted
 */
total: (number | null)
written: number
failed: number
/**
 * The first failures, with their reasons
 */
failures: {
environment: string
task_index: (number | null)
reason: string
}[]
/**
 * Why the export as a whole failed
 */
error: (string | null)
/**
 * Bytes of the file
 */
size: (number | null)
/**
 * Signed, for an hour; null until complete
 */
download_url: (string | null)
created_at: string
finished_at: (string | null)
}
"GET /v1/exports": {
exports: {
id: string
kind: "rollouts"
state: ("pending" | "running" | "complete" | "failed")
/**
 * null: all runs
 */
run: (string | null)
/**
 * In its canonical spelling
 */
query: string
format: ("parquet" | "rollouts-parquet" | "jsonl" | "openai" | "hf" | "sft" | "preference" | "curriculum")
lens: ("canonical" | "skyrl" | "verl" | "trl" | "prime-rl" | "slime" | "tinker" | "rllm")
redact: boolean
/**
 * Rollouts of the query; null until counted, and for queries with regexes, pairs and tasks
 */
total: (number | null)
/**
 * Rows in finished files
 */
written: number
/**
 * Rows that are in no file: no word of the model, or questions that differ
 */
skipped: number
/**
 * Finished files of data
 */
shards: number
bytes: number
/**
 * Once complete
 */
files: {
name: string
rows: number
size: number
/**
 * Signed, for an hour
 */
url: string
}[]
/**
 * Of the rollouts in finished files; null for tasks
 */
figures: ({
rollouts: number
scored: number
effective: number
reward_mean: (number | null)
reward_std: (number | null)
/**
 * By owner/name@version
 */
environments: {
[k: string]: number
}
runs: {
[k: string]: number
}
normalisers: {
[k: string]: number
}
} | null)
/**
 * Place in the order of arrival: later rollouts are not in it
 */
as_of: string
error: (string | null)
created_at: string
updated_at: string
finished_at: (string | null)
}[]
}
"POST /v1/exports": {
id: string
kind: "rollouts"
state: ("pending" | "running" | "complete" | "failed")
/**
 * null: all runs
 */
run: (string | null)
/**
 * In its canonical spelling
 */
query: string
format: ("parquet" | "rollouts-parquet" | "jsonl" | "openai" | "hf" | "sft" | "preference" | "curriculum")
lens: ("canonical" | "skyrl" | "verl" | "trl" | "prime-rl" | "slime" | "tinker" | "rllm")
redact: boolean
/**
 * Rollouts of the query; null until counted, and for queries with regexes, pairs and tasks
 */
total: (number | null)
/**
 * Rows in finished files
 */
written: number
/**
 * Rows that are in no file: no word of the model, or questions that differ
 */
skipped: number
/**
 * Finished files of data
 */
shards: number
bytes: number
/**
 * Once complete
 */
files: {
name: string
rows: number
size: number
/**
 * Signed, for an hour
 */
url: string
}[]
/**
 * Of the rollouts in finished files; null for tasks
 */
figures: ({
rollouts: number
scored: number
effective: number
reward_mean: (number | null)
reward_std: (number | null)
/**
 * By owner/name@version
 */
environments: {
[k: string]: number
}
runs: {
[k: string]: number
}
normalisers: {
[k: string]: number
}
} | null)
/**
 * Place in the order of arrival: later rollouts are not in it
 */
as_of: string
error: (string | null)
created_at: string
updated_at: string
finished_at: (string | null)
}
"DELETE /v1/files/{environmentId}/{path}": {
deletedCount: number
}
"DELETE /v1/files/{environmentId}/folder/{path}": {
deletedCount: number
}
"GET /v1/files/{environmentId}": {
files: {
path: string
size: number
}[]
folders: string[]
nextPageToken?: string
}
"POST /v1/files/upload-urls": {
urls: {
fileName: string
uploadUrl: string
}[]
}
"GET /v1/health": {
status: ("ready" | "draining" | "database_unavailable" | "storage_full")
database: {
reachable: boolean
/**
 * Since PostgreSQL stopped answering; 0 while it answers
 */
away_seconds: number
disk_full: boolean
/**
 * All migrations of this version are applied
 */
migrated: boolean
/**
 * The PostgreSQL that the service runs; null with DATABASE_URL
 */
embedded: ({
state: ("running" | "restarting" | "stopped")
/**
 * Since the service started
 */
restarts: number
/**
 * The last line that PostgreSQL wrote before it ended
 */
detail: (string | null)
} | null)
}
/**
 * The file system of the data directory, as far as the user of the service may fill it; null where the system does not say
 */
disk: ({
free_bytes: number
total_bytes: number
} | null)
/**
 * The level at which coding_env runs programs, and what prevents a stronger one; null while it does not run
 */
isolation: (string | null)
/**
 * Background jobs whose time has come, and sessions that wait for a slot; null while the database does not answer
 */
queue: ({
jobs_due: number
sessions_waiting: number
} | null)
}
"DELETE /v1/keys/{id}": {
id: string
name: string
/**
 * The member that the key belongs to
 */
user: string
/**
 * First characters of the key, enough to recognise it
 */
prefix: string
scopes: string[]
/**
 * Sessions open at the same time; null = the default of the server
 */
max_sessions: (number | null)
created_at: string
/**
 * null = never
 */
expires_at: (string | null)
last_used_at: (string | null)
revoked_at: (string | null)
}
"POST /v1/keys/rotate-secret": {
/**
 * False where the configuration sets the key: then only what is stored was sealed again.
 */
key_replaced: boolean
/**
 * Sessions whose secrets were sealed with the current key.
 */
resealed: number
/**
 * Sessions whose secrets no key of this service opens.
 */
unreadable: number
/**
 * Earlier keys that still open and verify.
 */
previous_keys: number
}
"GET /v1/keys": {
keys: {
id: string
name: string
/**
 * The member that the key belongs to
 */
user: string
/**
 * First characters of the key, enough to recognise it
 */
prefix: string
scopes: string[]
/**
 * Sessions open at the same time; null = the default of the server
 */
max_sessions: (number | null)
created_at: string
/**
 * null = never
 */
expires_at: (string | null)
last_used_at: (string | null)
revoked_at: (string | null)
}[]
}
"POST /v1/keys": {
id: string
name: string
/**
 * The member that the key belongs to
 */
user: string
/**
 * First characters of the key, enough to recognise it
 */
prefix: string
scopes: string[]
/**
 * Sessions open at the same time; null = the default of the server
 */
max_sessions: (number | null)
created_at: string
/**
 * null = never
 */
expires_at: (string | null)
last_used_at: (string | null)
revoked_at: (string | null)
/**
 * The key itself; shown this once.
 */
key: string
}
"POST /v1/login": {
ok: true
}
"POST /v1/logout": {
ok: true
}
"GET /v1/me": {
user: {
id: string
name: string
}
org: {
id: string
name: string
}
}
"POST /v1/members/{id}/sign-in-link": {
sign_in_url: string
}
"DELETE /v1/members/{id}": {
deleted: true
}
"PATCH /v1/members/{id}": {
id: string
name: string
/**
 * owner: also settings, members and keys of the organisation.
 */
role: ("owner" | "member")
created_at: string
keys: number
}
"GET /v1/members": {
members: {
id: string
name: string
/**
 * owner: also settings, members and keys of the organisation.
 */
role: ("owner" | "member")
created_at: string
keys: number
}[]
}
"POST /v1/members": {
id: string
name: string
/**
 * owner: also settings, members and keys of the organisation.
 */
role: ("owner" | "member")
created_at: string
keys: number
/**
 * Signs a browser in, once, within a day; shown this once.
 */
sign_in_url: string
}
"GET /v1/namespace/current": {
id: string
name: string
type: string
}
"GET /v1/organisation": {
id: string
name: string
/**
 * Of the caller.
 */
role: ("owner" | "member")
/**
 * Days without news after which rollouts are erased, where a run does not say otherwise; null: never.
 */
retention_days: (number | null)
/**
 * Sessions open at the same time; null: the default of the server.
 */
max_sessions: (number | null)
created_at: string
}
"PATCH /v1/organisation": {
id: string
name: string
/**
 * Of the caller.
 */
role: ("owner" | "member")
/**
 * Days without news after which rollouts are erased, where a run does not say otherwise; null: never.
 */
retention_days: (number | null)
/**
 * Sessions open at the same time; null: the default of the server.
 */
max_sessions: (number | null)
created_at: string
}
"POST /v1/organisations": {
organisation: {
id: string
name: string
/**
 * Of the caller.
 */
role: ("owner" | "member")
/**
 * Days without news after which rollouts are erased, where a run does not say otherwise; null: never.
 */
retention_days: (number | null)
/**
 * Sessions open at the same time; null: the default of the server.
 */
max_sessions: (number | null)
created_at: string
}
/**
 * Signs a browser in, once, within a day; shown this once.
 */
sign_in_url: string
}
"GET /v1/rollouts/{id}/beside": {
/**
 * Before it in the list; null at its beginning.
 */
previous: ({
id: string
step: (number | null)
sample: (number | null)
reward: (number | null)
} | null)
/**
 * After it; null at the end.
 */
next: ({
id: string
step: (number | null)
sample: (number | null)
reward: (number | null)
} | null)
/**
 * A regex had too little time to find one of them.
 */
incomplete: boolean
}
"GET /v1/rollouts/{id}/calls": {
session: (string | null)
verified: (("unverified" | "partial" | "verified") | null)
latency_ms: (number | null)
calls: {
index: number
session: string
tool: string
duration_ms: (number | null)
failure_class: (string | null)
}[]
}
"GET /v1/rollouts/{id}/header": {
id: string
rolloutName: (string | null)
environment: (string | null)
split: (string | null)
variant: (string | null)
task_index: (number | null)
/**
 * Id of its task in this organisation; null without any.
 */
task: (string | null)
step: (number | null)
policy_step: (number | null)
/**
 * Key of its group: samples of one task at one step.
 */
group: (string | null)
sample: (number | null)
phase: ("train" | "eval" | "unknown")
/**
 * Sum of message rewards, else the reported total unless that is 0; null without either, and for a failed rollout.
 */
reward: (number | null)
/**
 * As the trainer reported it.
 */
reward_reported: (number | null)
max_reward: (number | null)
num_messages: number
num_tool_calls: number
/**
 * Tool results that are errors.
 */
num_errors: number
turns: number
/**
 * Of what the model wrote; an estimate unless `provenance.tokens` is `reported`.
 */
tokens: (number | null)
/**
 * Of what tools answered; an estimate as `tokens` is.
 */
tool_tokens: (number | null)
bytes: number
/**
 * Messages that must have been sent and did not come; 0 until nothing of the rollout came for PALESTRA_GAP_GRACE_S.
 */
gaps: number
finished: boolean
/**
 * Why it ended: `finished` or another stop reason; null when unknown.
 */
stop: (string | null)
/**
 * Set when it failed by no fault of its policy: it is unscored then, whatever rewards its messages have.
 */
failure_class: (("environment" | "infrastructure") | null)
/**
 * What is odd about it: `reward_mismatch`, `stamped_turn`, `nonfinite`, ...
 */
flags: string[]
/**
 * How each field came to be known.
 */
provenance: {
[k: string]: "unknown" | "inferred" | "parsed" | "reported"
}
/**
 * Whether its calls are those of our session ledger; null: not compared yet.
 */
verified: (("unverified" | "partial" | "verified") | null)
/**
 * Sum of true tool latencies, from the ledger; null when no session was matched.
 */
latency_ms: (number | null)
/**
 * The integration that uploaded it.
 */
source: (string | null)
model: (string | null)
/**
 * The session that it happened in.
 */
session: (string | null)
state: ("live" | "complete" | "stale" | "empty")
created_at: string
updated_at: string
run: {
id: string
name: string
org: string
}
metadata: {
[k: string]: unknown
}
task_spec: unknown
run_info: ({
[k: string]: unknown
} | null)
rollout_info: ({
[k: string]: unknown
} | null)
/**
 * By which rule each field of `provenance` was found.
 */
rules: {
[k: string]: string
}
/**
 * Indexes that never arrived although later ones did.
 */
missing_indexes: number[]
neighbours: {
/**
 * In its group, by sample.
 */
previous_sample: ({
id: string
step: (number | null)
sample: (number | null)
reward: (number | null)
} | null)
next_sample: ({
id: string
step: (number | null)
sample: (number | null)
reward: (number | null)
} | null)
/**
 * Highest reward of the group; null when that is this one.
 */
best_sample: ({
id: string
step: (number | null)
sample: (number | null)
reward: (number | null)
} | null)
/**
 * The same task at the step before, the same sample where it is there.
 */
previous_step: ({
id: string
step: (number | null)
sample: (number | null)
reward: (number | null)
} | null)
next_step: ({
id: string
step: (number | null)
sample: (number | null)
reward: (number | null)
} | null)
}
/**
 * upload: message times are those of the upload, gaps between them mean nothing.
 */
time_kind: ("live" | "upload")
}
"GET /v1/rollouts/{id}/messages": {
messages: {
eventId: string
index: number
timestamp: number
type: ("reasoning" | "tool_call" | "tool_result" | "user_message" | "assistant_message" | "system_message")
content: (string | null)
contentReference: (string | null)
summary: (string | null)
name: (string | null)
callId: (string | null)
reward: (number | null)
isFinished: boolean
metadata: {
[k: string]: unknown
}
/**
 * The client sent NaN or Infinity somewhere in this event.
 */
nonfinite?: boolean
/**
 * Only when `content` is cut: bytes of the whole body, to be read at `/v1/rollouts/{id}/messages/{index}/body`.
 */
body_bytes?: number
}[]
total: number
}
"GET /v1/rollouts/{id}/outline": {
total: number
/**
 * What `type` counts in.
 */
types: string[]
/**
 * What `name` counts in.
 */
names: string[]
index: number[]
type: number[]
name: (number | null)[]
reward: (number | null)[]
bytes: number[]
/**
 * 1: a failed result. 2: a call that could not be parsed. 4: a nudge.
 */
error: number[]
/**
 * Of a call, true, from the ledger.
 */
duration_ms: (number | null)[]
/**
 * Of a result the position (in these columns) of its call, of a call that of its result.
 */
pair: (number | null)[]
/**
 * Ranges of indexes that never arrived.
 */
missing: never[][]
}
"DELETE /v1/rollouts/{id}": {
deleted: true
}
"GET /v1/rollouts/{id}": {
id: string
rolloutName: (string | null)
environment: (string | null)
split: (string | null)
variant: (string | null)
task_index: (number | null)
/**
 * Id of its task in this organisation; null without any.
 */
task: (string | null)
step: (number | null)
policy_step: (number | null)
/**
 * Key of its group: samples of one task at one step.
 */
group: (string | null)
sample: (number | null)
phase: ("train" | "eval" | "unknown")
/**
 * Sum of message rewards, else the reported total unless that is 0; null without either, and for a failed rollout.
 */
reward: (number | null)
/**
 * As the trainer reported it.
 */
reward_reported: (number | null)
max_reward: (number | null)
num_messages: number
num_tool_calls: number
/**
 * Tool results that are errors.
 */
num_errors: number
turns: number
/**
 * Of what the model wrote; an estimate unless `provenance.tokens` is `reported`.
 */
tokens: (number | null)
/**
 * Of what tools answered; an estimate as `tokens` is.
 */
tool_tokens: (number | null)
bytes: number
/**
 * Messages that must have been sent and did not come; 0 until nothing of the rollout came for PALESTRA_GAP_GRACE_S.
 */
gaps: number
finished: boolean
/**
 * Why it ended: `finished` or another stop reason; null when unknown.
 */
stop: (string | null)
/**
 * Set when it failed by no fault of its policy: it is unscored then, whatever rewards its messages have.
 */
failure_class: (("environment" | "infrastructure") | null)
/**
 * What is odd about it: `reward_mismatch`, `stamped_turn`, `nonfinite`, ...
 */
flags: string[]
/**
 * How each field came to be known.
 */
provenance: {
[k: string]: "unknown" | "inferred" | "parsed" | "reported"
}
/**
 * Whether its calls are those of our session ledger; null: not compared yet.
 */
verified: (("unverified" | "partial" | "verified") | null)
/**
 * Sum of true tool latencies, from the ledger; null when no session was matched.
 */
latency_ms: (number | null)
/**
 * The integration that uploaded it.
 */
source: (string | null)
model: (string | null)
/**
 * The session that it happened in.
 */
session: (string | null)
state: ("live" | "complete" | "stale" | "empty")
created_at: string
updated_at: string
run: {
id: string
name: string
org: string
}
metadata: {
[k: string]: unknown
}
task_spec: unknown
run_info: ({
[k: string]: unknown
} | null)
rollout_info: ({
[k: string]: unknown
} | null)
/**
 * By which rule each field of `provenance` was found.
 */
rules: {
[k: string]: string
}
/**
 * Indexes that never arrived although later ones did.
 */
missing_indexes: number[]
messages: {
eventId: string
index: number
timestamp: number
type: ("reasoning" | "tool_call" | "tool_result" | "user_message" | "assistant_message" | "system_message")
content: (string | null)
contentReference: (string | null)
summary: (string | null)
name: (string | null)
callId: (string | null)
reward: (number | null)
isFinished: boolean
metadata: {
[k: string]: unknown
}
/**
 * The client sent NaN or Infinity somewhere in this event.
 */
nonfinite?: boolean
/**
 * Only when `content` is cut: bytes of the whole body, to be read at `/v1/rollouts/{id}/messages/{index}/body`.
 */
body_bytes?: number
}[]
}
"POST /v1/rollouts": {
/**
 * Events stored now.
 */
accepted: number
/**
 * Events that were stored before; they count as acknowledged.
 */
duplicates: number
/**
 * Of the duplicates those that were stored with other content, which stays.
 */
conflicts: number
/**
 * Events not kept, and why.
 */
rejected: {
position: number
event_id: (string | null)
detail: string
}[]
/**
 * One a sent event, in their order; only with `Prefer: return=representation`.
 */
results?: {
position: number
event_id: (string | null)
status: ("accepted" | "duplicate" | "conflict" | "rejected")
detail?: string
}[]
}
"GET /v1/runs/{id}/rollouts": {
rollouts: {
id: string
rolloutName: (string | null)
environment: (string | null)
split: (string | null)
variant: (string | null)
task_index: (number | null)
/**
 * Id of its task in this organisation; null without any.
 */
task: (string | null)
step: (number | null)
policy_step: (number | null)
/**
 * Key of its group: samples of one task at one step.
 */
group: (string | null)
sample: (number | null)
phase: ("train" | "eval" | "unknown")
/**
 * Sum of message rewards, else the reported total unless that is 0; null without either, and for a failed rollout.
 */
reward: (number | null)
/**
 * As the trainer reported it.
 */
reward_reported: (number | null)
max_reward: (number | null)
num_messages: number
num_tool_calls: number
/**
 * Tool results that are errors.
 */
num_errors: number
turns: number
/**
 * Of what the model wrote; an estimate unless `provenance.tokens` is `reported`.
 */
tokens: (number | null)
/**
 * Of what tools answered; an estimate as `tokens` is.
 */
tool_tokens: (number | null)
bytes: number
/**
 * Messages that must have been sent and did not come; 0 until nothing of the rollout came for PALESTRA_GAP_GRACE_S.
 */
gaps: number
finished: boolean
/**
 * Why it ended: `finished` or another stop reason; null when unknown.
 */
stop: (string | null)
/**
 * Set when it failed by no fault of its policy: it is unscored then, whatever rewards its messages have.
 */
failure_class: (("environment" | "infrastructure") | null)
/**
 * What is odd about it: `reward_mismatch`, `stamped_turn`, `nonfinite`, ...
 */
flags: string[]
/**
 * How each field came to be known.
 */
provenance: {
[k: string]: "unknown" | "inferred" | "parsed" | "reported"
}
/**
 * Whether its calls are those of our session ledger; null: not compared yet.
 */
verified: (("unverified" | "partial" | "verified") | null)
/**
 * Sum of true tool latencies, from the ledger; null when no session was matched.
 */
latency_ms: (number | null)
/**
 * The integration that uploaded it.
 */
source: (string | null)
model: (string | null)
/**
 * The session that it happened in.
 */
session: (string | null)
state: ("live" | "complete" | "stale" | "empty")
created_at: string
updated_at: string
}[]
/**
 * Rollouts that match.
 */
total: number
/**
 * `at_least`: counting stopped where it gets expensive.
 */
total_is: ("exact" | "at_least")
/**
 * For the next page; null: this is the last one.
 */
next: (string | null)
/**
 * The query in its canonical spelling; null without one.
 */
query: (string | null)
}
"DELETE /v1/runs/{id}": {
deleted: true
}
"GET /v1/runs/{id}": {
id: string
name: string
/**
 * Name of the owning organisation: first segment of the page `/:org/runs/:run`.
 */
org: string
num_rollouts: number
/**
 * Mean reward of the scored rollouts; null without any.
 */
avg_rollout_reward: (number | null)
/**
 * Rollouts with a reward: the denominator of `avg_rollout_reward`.
 */
num_scored: number
/**
 * Rollouts that failed by no fault of the policy: unscored, out of num_rollouts.
 */
num_errors: number
num_finished: number
/**
 * Mean number of messages.
 */
avg_rollout_length: (number | null)
/**
 * Largest step; null when no step is known.
 */
last_step: (number | null)
environments: string[]
tags: string[]
/**
 * What its owner set over the normaliser.
 */
settings: {
[k: string]: unknown
}
/**
 * What step inference found: samples per prompt `n`, `confidence`.
 */
inference: ({
[k: string]: unknown
} | null)
/**
 * Days without news after which its rollouts are erased; null: the organisation’s rule.
 */
retention_days: (number | null)
/**
 * Counts up with every change of its figures.
 */
version: string
created_at: string
updated_at: string
/**
 * An event arrived in the last 10 s.
 */
live: boolean
}
"PATCH /v1/runs/{id}": {
id: string
name: string
/**
 * Name of the owning organisation: first segment of the page `/:org/runs/:run`.
 */
org: string
num_rollouts: number
/**
 * Mean reward of the scored rollouts; null without any.
 */
avg_rollout_reward: (number | null)
/**
 * Rollouts with a reward: the denominator of `avg_rollout_reward`.
 */
num_scored: number
/**
 * Rollouts that failed by no fault of the policy: unscored, out of num_rollouts.
 */
num_errors: number
num_finished: number
/**
 * Mean number of messages.
 */
avg_rollout_length: (number | null)
/**
 * Largest step; null when no step is known.
 */
last_step: (number | null)
environments: string[]
tags: string[]
/**
 * What its owner set over the normaliser.
 */
settings: {
[k: string]: unknown
}
/**
 * What step inference found: samples per prompt `n`, `confidence`.
 */
inference: ({
[k: string]: unknown
} | null)
/**
 * Days without news after which its rollouts are erased; null: the organisation’s rule.
 */
retention_days: (number | null)
/**
 * Counts up with every change of its figures.
 */
version: string
created_at: string
updated_at: string
/**
 * An event arrived in the last 10 s.
 */
live: boolean
}
"GET /v1/runs/{run}/config": {
run: {
id: string
name: string
version: string
created_at: string
updated_at: string
}
ingest: {
accepted: number
duplicates: number
conflicts: number
late: number
nonfinite: number
}
rollouts: number
messages: number
/**
 * Of the messages of the rollouts that were looked at.
 */
bytes: number
gaps: number
/**
 * Rollouts behind `provenance`, `sources`, `models`, `verified` and `bytes`: the newest ones, at most 50 000.
 */
looked_at: number
provenance: {
[k: string]: {
[k: string]: number
}
}
sources: {
[k: string]: number
}
models: {
[k: string]: number
}
verified: {
[k: string]: number
}
normaliser: {
current: number
rows: {
[k: string]: number
}
}
settings: {
[k: string]: unknown
}
inference: ({
[k: string]: unknown
} | null)
retention_days: (number | null)
success: {
environment: (string | null)
variant: (string | null)
threshold: number
strict: boolean
}[]
}
"GET /v1/runs/{run}/facets": {
total: number
/**
 * Counting stops at 10 000: show "10k+".
 */
total_is: ("exact" | "at_least")
query: (string | null)
/**
 * The query holds a regex, which is not applied to the counts.
 */
approximate: boolean
env: {
value: string
count: number
}[]
split: {
value: string
count: number
}[]
phase: {
value: ("train" | "eval" | "unknown")
count: number
}[]
stop: {
value: string
count: number
}[]
/**
 * Rollouts that called it.
 */
tool: {
value: string
count: number
}[]
/**
 * Rollouts in which a call of it failed.
 */
tool_error: {
value: string
count: number
}[]
tag: {
value: string
count: number
}[]
model: {
value: string
count: number
}[]
step: {
min: (number | null)
max: (number | null)
}
policy_step: {
min: (number | null)
max: (number | null)
}
reward: {
min: (number | null)
max: (number | null)
unscored: number
/**
 * About ten, `from` ≤ reward < `below`; none where all rewards are equal.
 */
bins: {
from: number
below: number
count: number
}[]
}
/**
 * Of each field, rollouts by how it is known.
 */
provenance: {
[k: string]: {
[k: string]: number
}
}
/**
 * Rollouts with a failed tool result.
 */
errors: number
}
"GET /v1/runs/{run}/failures": {
failures: {
fingerprint: string
/**
 * Text of the last error with what differs between rollouts taken out; null: it ended without an error text.
 */
error: (string | null)
tool: (string | null)
stop: string
count: number
/**
 * Newest examples.
 */
rollouts: string[]
first_step: (number | null)
last_step: (number | null)
mean_reward: (number | null)
}[]
/**
 * Newest rollouts with an error or without an end.
 */
looked_at: number
/**
 * Whose messages were read in time; the rest is clustered by its stop alone.
 */
read: number
incomplete: boolean
}
"GET /v1/runs/{run}/groups/{key}": {
key: string
step: (number | null)
phase: ("train" | "eval" | "unknown")
environment: (string | null)
task: ({
id: string
key: string
index: (number | null)
split: (string | null)
} | null)
received: number
expected: (number | null)
/**
 * Null: nobody said how many there should be.
 */
complete: (boolean | null)
scored: number
errors: number
successes: number
mean: (number | null)
/**
 * ddof 1; 0 when the rewards differ by at most 1e-6.
 */
std: (number | null)
min: (number | null)
max: (number | null)
zero_variance: (("all-fail" | "all-pass" | "equal-other") | null)
/**
 * pass@k of this group, for powers of two.
 */
pass: {
k: number
value: (number | null)
}[]
rollouts: {
id: string
rolloutName: (string | null)
environment: (string | null)
split: (string | null)
variant: (string | null)
task_index: (number | null)
/**
 * Id of its task in this organisation; null without any.
 */
task: (string | null)
step: (number | null)
policy_step: (number | null)
/**
 * Key of its group: samples of one task at one step.
 */
group: (string | null)
sample: (number | null)
phase: ("train" | "eval" | "unknown")
/**
 * Sum of message rewards, else the reported total unless that is 0; null without either, and for a failed rollout.
 */
reward: (number | null)
/**
 * As the trainer reported it.
 */
reward_reported: (number | null)
max_reward: (number | null)
num_messages: number
num_tool_calls: number
/**
 * Tool results that are errors.
 */
num_errors: number
turns: number
/**
 * Of what the model wrote; an estimate unless `provenance.tokens` is `reported`.
 */
tokens: (number | null)
/**
 * Of what tools answered; an estimate as `tokens` is.
 */
tool_tokens: (number | null)
bytes: number
/**
 * Messages that must have been sent and did not come; 0 until nothing of the rollout came for PALESTRA_GAP_GRACE_S.
 */
gaps: number
finished: boolean
/**
 * Why it ended: `finished` or another stop reason; null when unknown.
 */
stop: (string | null)
/**
 * Set when it failed by no fault of its policy: it is unscored then, whatever rewards its messages have.
 */
failure_class: (("environment" | "infrastructure") | null)
/**
 * What is odd about it: `reward_mismatch`, `stamped_turn`, `nonfinite`, ...
 */
flags: string[]
/**
 * How each field came to be known.
 */
provenance: {
[k: string]: "unknown" | "inferred" | "parsed" | "reported"
}
/**
 * Whether its calls are those of our session ledger; null: not compared yet.
 */
verified: (("unverified" | "partial" | "verified") | null)
/**
 * Sum of true tool latencies, from the ledger; null when no session was matched.
 */
latency_ms: (number | null)
/**
 * The integration that uploaded it.
 */
source: (string | null)
model: (string | null)
/**
 * The session that it happened in.
 */
session: (string | null)
state: ("live" | "complete" | "stale" | "empty")
created_at: string
updated_at: string
/**
 * (r − mean) / (std + 1e-6), ddof 1.
 */
advantage: (number | null)
/**
 * r − mean.
 */
advantage_centred: (number | null)
/**
 * After the trainer’s own post-processing; null until the owner has given its settings.
 */
reward_trained: (number | null)
}[]
/**
 * Rollouts that should have come and did not: trainers drop failed ones.
 */
missing: number
note: (string | null)
}
"GET /v1/runs/{run}/groups": {
groups: {
key: string
step: (number | null)
phase: ("train" | "eval" | "unknown")
environment: (string | null)
task: ({
id: string
key: string
index: (number | null)
split: (string | null)
} | null)
received: number
expected: (number | null)
/**
 * Null: nobody said how many there should be.
 */
complete: (boolean | null)
scored: number
errors: number
successes: number
mean: (number | null)
/**
 * ddof 1; 0 when the rewards differ by at most 1e-6.
 */
std: (number | null)
min: (number | null)
max: (number | null)
zero_variance: (("all-fail" | "all-pass" | "equal-other") | null)
}[]
next: (string | null)
query: (string | null)
incomplete: boolean
}
"GET /v1/runs/{run}/heatmap": {
/**
 * What `x` is: `window` where no step is known, its values are then the beginnings, in milliseconds since the epoch.
 */
axis: ("step" | "time" | "count" | "window")
/**
 * In words: `arrival window of 5 min`.
 */
axis_label: string
/**
 * Width of a window of arrival; null: points are steps.
 */
window_ms: (number | null)
y: ("reward" | "turns" | "tokens")
phase: (("train" | "eval" | "unknown") | null)
/**
 * bins + 1 edges; a bin holds the edge that is away from zero.
 */
edges: number[]
/**
 * First step of each column, or where its first window begins.
 */
from: number[]
/**
 * Last step of each column, or where its last window ends.
 */
to: number[]
/**
 * By column, then bin.
 */
counts: number[][]
incomplete: boolean
}
"GET /v1/runs/{run}/search": {
hits: {
run: {
id: string
name: string
}
rollout: string
rollout_name: (string | null)
step: (number | null)
reward: (number | null)
/**
 * Of the message.
 */
index: number
type: string
name: (string | null)
snippet: string
/**
 * Begin and end in the snippet, UTF-16.
 */
matches: never[][]
/**
 * Where the snippet begins in the content, UTF-16.
 */
offset: number
}[]
/**
 * A page may hold fewer hits than asked, or none, and still have a next one: its time was over.
 */
next: (string | null)
/**
 * Messages that hit, by step; on the first page of a text search.
 */
steps: ({
step: (number | null)
hits: number
}[] | null)
/**
 * Counting stopped at 10 000 messages.
 */
steps_capped: boolean
/**
 * Rollouts have come that are not searchable yet; they will be in seconds.
 */
pending: boolean
/**
 * `within` in its canonical spelling.
 */
query: (string | null)
incomplete: boolean
}
"GET /v1/runs/{run}/series": {
/**
 * As asked.
 */
x: ("step" | "time" | "count" | "window")
/**
 * What `x` is: `window` where no step is known, its values are then the beginnings, in milliseconds since the epoch.
 */
axis: ("step" | "time" | "count" | "window")
/**
 * In words: `arrival window of 5 min`.
 */
axis_label: string
/**
 * Width of a window of arrival; null: points are steps.
 */
window_ms: (number | null)
series: {
/**
 * As asked.
 */
m: string
key: string
lens: ("canonical" | "skyrl" | "verl" | "trl" | "prime-rl" | "slime" | "tinker" | "rllm")
/**
 * Null: the trainer’s own rule.
 */
den: (("scored" | "all" | "effective") | null)
label: string
formula: string
phase: ("train" | "eval" | "unknown")
env: (string | null)
/**
 * What `x` is: `window` where no step is known, its values are then the beginnings, in milliseconds since the epoch.
 */
axis: ("step" | "time" | "count" | "window")
/**
 * In words: `arrival window of 5 min`.
 */
axis_label: string
/**
 * Width of a window of arrival; null: points are steps.
 */
window_ms: (number | null)
/**
 * Of windows of arrival their number from 0, which is no step: no query finds it.
 */
step: number[]
x: (number | null)[]
/**
 * Null: there was nothing to compute it from, or the upload does not hold it (`unavailable`).
 */
value: (number | null)[]
/**
 * How many rollouts, groups or results went in.
 */
denominator: number[]
/**
 * Of how many that were there.
 */
of: number[]
/**
 * The weakest of what went in, the step among it.
 */
provenance: ("unknown" | "inferred" | "parsed" | "reported")[]
/**
 * Groups of the step that still wait for rollouts: drawn hollow.
 */
incomplete_groups: number[]
notes: {
at: number
note: string
}[]
/**
 * The upload does not hold what this metric needs, at no step.
 */
unavailable: boolean
}[]
/**
 * Rollouts whose step is not known: in no series of steps.
 */
unknown_step: number
/**
 * Some figures are still being made: ask again.
 */
incomplete: boolean
}
"GET /v1/runs/{run}/steps": {
/**
 * Unless asked for, the phase with the most rollouts.
 */
phase: (("train" | "eval" | "unknown") | null)
/**
 * First step of each column; where no step is known, when its window of arrival begins, milliseconds since the epoch.
 */
from: number[]
/**
 * Last step of each column, or when its last window ends.
 */
to: number[]
rollouts: number[]
scored: number[]
/**
 * Rollouts that failed by no fault of the policy.
 */
errors: number[]
finished: number[]
groups: number[]
incomplete_groups: number[]
/**
 * Messages that must have been sent and are not here.
 */
gaps: number[]
/**
 * Why the rollouts of each column stopped, most frequent first.
 */
stops: {
stop: string
counts: number[]
}[]
}
"GET /v1/runs/{run}/summary": {
lens: ("canonical" | "skyrl" | "verl" | "trl" | "prime-rl" | "slime" | "tinker" | "rllm")
den: (("scored" | "all" | "effective") | null)
/**
 * Unless asked for, the phase with the most rollouts.
 */
phase: (("train" | "eval" | "unknown") | null)
/**
 * What `x` is: `window` where no step is known, its values are then the beginnings, in milliseconds since the epoch.
 */
axis: ("step" | "time" | "count" | "window")
/**
 * In words: `arrival window of 5 min`.
 */
axis_label: string
/**
 * Width of a window of arrival; null: points are steps.
 */
window_ms: (number | null)
/**
 * Where no step is known: the windows of arrival that charts have instead; milliseconds since the epoch.
 */
windows: ({
from: number
to: number
count: number
} | null)
steps: {
from: (number | null)
to: (number | null)
count: number
}
rollouts: number
scored: number
errors: number
finished: number
messages: number
/**
 * Messages that must have been sent and are not here.
 */
gaps: number
groups: number
incomplete_groups: number
stops: {
[k: string]: number
}
/**
 * Null: environments differ.
 */
success: ({
threshold: number
strict: boolean
} | null)
kpis: {
key: string
label: string
value: (number | null)
denominator: number
of: number
/**
 * 95 % interval, where there is one: Student-t on group means; of pass@k the group bootstrap of 1000 draws, seeded.
 */
low: (number | null)
high: (number | null)
/**
 * Steps that went in.
 */
steps: number
note: (string | null)
}[]
/**
 * Rollouts by the weakest provenance of their step, a field.
 */
provenance: {
[k: string]: {
[k: string]: number
}
}
/**
 * Since the newest event that is in the figures.
 */
lag_ms: (number | null)
advisories: {
rule: string
level: ("hint" | "warning")
text: string
value: (number | null)
threshold: (number | null)
/**
 * The rollouts behind it, as a query.
 */
q: (string | null)
}[]
incomplete: boolean
}
"GET /v1/runs/{run}/tasks/{task}": {
task: {
id: string
key: string
index: (number | null)
split: (string | null)
}
environment: (string | null)
/**
 * Steps at which it was tried, at most the last 500.
 */
step: number[]
/**
 * Successes per scored rollout at each.
 */
solve: (number | null)[]
scored: number[]
/**
 * First step with a success.
 */
first_solved: (number | null)
/**
 * How often solved (at least half of the rollouts) became unsolved or the other way round.
 */
flips: number
/**
 * It was solved before, and from this step on it is not.
 */
regressed_at: (number | null)
now: ({
step: number
successes: number
scored: number
} | null)
/**
 * Newest step first, at most 500.
 */
groups: {
key: string
step: (number | null)
phase: ("train" | "eval" | "unknown")
environment: (string | null)
task: ({
id: string
key: string
index: (number | null)
split: (string | null)
} | null)
received: number
expected: (number | null)
/**
 * Null: nobody said how many there should be.
 */
complete: (boolean | null)
scored: number
errors: number
successes: number
mean: (number | null)
/**
 * ddof 1; 0 when the rewards differ by at most 1e-6.
 */
std: (number | null)
min: (number | null)
max: (number | null)
zero_variance: (("all-fail" | "all-pass" | "equal-other") | null)
}[]
}
"GET /v1/runs/{run}/tasks": {
tasks: {
task: {
id: string
key: string
index: (number | null)
split: (string | null)
}
environment: (string | null)
/**
 * Steps at which it was tried, at most the last 500.
 */
step: number[]
/**
 * Successes per scored rollout at each.
 */
solve: (number | null)[]
scored: number[]
/**
 * First step with a success.
 */
first_solved: (number | null)
/**
 * How often solved (at least half of the rollouts) became unsolved or the other way round.
 */
flips: number
/**
 * It was solved before, and from this step on it is not.
 */
regressed_at: (number | null)
now: ({
step: number
successes: number
scored: number
} | null)
}[]
next: (string | null)
}
"GET /v1/runs/{run}/tools/check": {
tool: string
/**
 * Calls of the newest rollouts that were looked at.
 */
calls: number
/**
 * That hold them.
 */
rollouts: number
/**
 * Calls whose arguments were held against a schema.
 */
checked: number
valid: number
/**
 * Calls with a violation; only the first of each call is counted below.
 */
invalid: number
/**
 * Among the invalid ones: arguments that are no JSON object.
 */
unparsable: number
/**
 * Calls in environments that publish no usable schema of the tool.
 */
without_schema: number
/**
 * Calls whose arguments are too long to be looked at here.
 */
unread: number
violations: {
/**
 * Where in the arguments, as a JSON pointer; empty for the whole.
 */
path: string
/**
 * Keyword of the schema, or `json`.
 */
rule: string
message: string
count: number
/**
 * Newest first.
 */
examples: {
rollout: string
index: number
}[]
}[]
/**
 * Held against, by environment.
 */
schemas: {
environment: (string | null)
schema: unknown
}[]
/**
 * Time ran out before so many calls were read.
 */
incomplete: boolean
}
"GET /v1/runs/{run}/tools/steps": {
tool: string
/**
 * Steps at which it was called; rollouts whose step is not known are left out.
 */
step: number[]
/**
 * That called it, at each step.
 */
rollouts: number[]
calls: number[]
/**
 * Results that are errors, as uploaded.
 */
errors: number[]
result_bytes: number[]
/**
 * Calls whose true latency is known.
 */
timed: number[]
/**
 * Of the timed calls; where a step has several environments, their percentiles weighted by calls.
 */
p50_ms: (number | null)[]
p95_ms: (number | null)[]
/**
 * Calls of rollouts whose step is not known.
 */
unknown_step: number
}
"GET /v1/runs/{run}/tools": {
tools: {
tool: string
/**
 * Whether the environments that it was called in publish it; null where none of them is known here. A task may bring its own.
 */
published: (boolean | null)
/**
 * Environments in which it was called although they publish no such tool.
 */
unpublished_in: string[]
/**
 * That called it.
 */
rollouts: number
calls: number
calls_per_rollout: number
/**
 * Results that are errors, as uploaded.
 */
errors: number
error_rate: (number | null)
/**
 * Of the matched calls, by our own ledger.
 */
failures: {
policy: number
environment: number
infrastructure: number
}
result_bytes: number
latency: {
p50_ms: (number | null)
p95_ms: (number | null)
/**
 * Calls whose true latency is known.
 */
timed: number
/**
 * timed / calls: "latency from 97 % of calls".
 */
coverage: (number | null)
/**
 * False: percentiles are those of steps, weighted by their calls.
 */
exact: boolean
}
/**
 * Mean reward of rollouts that used it; a correlation, no cause.
 */
reward_used: (number | null)
reward_unused: (number | null)
}[]
rollouts: number
}
"GET /v1/runs": {
runs: {
id: string
name: string
/**
 * Name of the owning organisation: first segment of the page `/:org/runs/:run`.
 */
org: string
num_rollouts: number
/**
 * Mean reward of the scored rollouts; null without any.
 */
avg_rollout_reward: (number | null)
/**
 * Rollouts with a reward: the denominator of `avg_rollout_reward`.
 */
num_scored: number
/**
 * Rollouts that failed by no fault of the policy: unscored, out of num_rollouts.
 */
num_errors: number
num_finished: number
/**
 * Mean number of messages.
 */
avg_rollout_length: (number | null)
/**
 * Largest step; null when no step is known.
 */
last_step: (number | null)
environments: string[]
tags: string[]
/**
 * What its owner set over the normaliser.
 */
settings: {
[k: string]: unknown
}
/**
 * What step inference found: samples per prompt `n`, `confidence`.
 */
inference: ({
[k: string]: unknown
} | null)
/**
 * Days without news after which its rollouts are erased; null: the organisation’s rule.
 */
retention_days: (number | null)
/**
 * Counts up with every change of its figures.
 */
version: string
created_at: string
updated_at: string
/**
 * An event arrived in the last 10 s.
 */
live: boolean
/**
 * Mean rewards over its steps, at most 100 points; null where nothing was scored.
 */
sparkline: (number | null)[]
/**
 * Figures of the newest steps, of training where there is any; of all its rollouts together where no step is known. Null without a rollout.
 */
recent: ({
/**
 * Newest steps that went in, at most 10; 0 where no step is known.
 */
steps: number
rollouts: number
reward: (number | null)
/**
 * Mean reward of these steps less that of as many steps before them.
 */
reward_delta: (number | null)
/**
 * The largest power of two that some group has.
 */
pass_k: (number | null)
pass: (number | null)
zero_variance: (number | null)
/**
 * Share of rollouts that the environment or the infrastructure broke off.
 */
broken_off: (number | null)
/**
 * Mean tokens of a rollout, of the model and of tools.
 */
tokens: (number | null)
} | null)
/**
 * Trainer, model and people of its newest rollout; null while none is understood.
 */
origin: ({
source: (string | null)
model: (string | null)
/**
 * The program that played it, as its uploader named it.
 */
agent: (string | null)
/**
 * Who played it: of the session that it names. Who uploaded it is not kept.
 */
user: (string | null)
/**
 * Name of the API key of that session.
 */
key: (string | null)
} | null)
/**
 * Of its rollouts: training, evaluation, or not known.
 */
phases: ("train" | "eval" | "unknown")[]
}[]
total: number
next: (string | null)
}
"GET /v1/search": {
hits: {
run: {
id: string
name: string
}
rollout: string
rollout_name: (string | null)
step: (number | null)
reward: (number | null)
/**
 * Of the message.
 */
index: number
type: string
name: (string | null)
snippet: string
/**
 * Begin and end in the snippet, UTF-16.
 */
matches: never[][]
/**
 * Where the snippet begins in the content, UTF-16.
 */
offset: number
}[]
/**
 * A page may hold fewer hits than asked, or none, and still have a next one: its time was over.
 */
next: (string | null)
/**
 * Messages that hit, by step; on the first page of a text search.
 */
steps: ({
step: (number | null)
hits: number
}[] | null)
/**
 * Counting stopped at 10 000 messages.
 */
steps_capped: boolean
/**
 * Rollouts have come that are not searchable yet; they will be in seconds.
 */
pending: boolean
/**
 * `within` in its canonical spelling.
 */
query: (string | null)
incomplete: boolean
}
"GET /v1/sessions/{sid}/calls/{taskId}": {
task_id: string
/**
 * Rises with every call of a session.
 */
seq: number
kind: ("call" | "score_group")
tool: string
/**
 * `at_call` of a fork that begins with the calls up to this one; null for a call that is no part of a replay.
 */
at_call: (number | null)
/**
 * JSON text as sent, secrets hidden; cut when `truncated`.
 */
input: string
input_bytes: number
state: ("running" | "result" | "tool_failed" | "refused")
/**
 * Text of the tool, or how it failed; the beginning of the stored JSON when `truncated`; null while it runs.
 */
text: (string | null)
/**
 * Output of the tool; null for failures and when `truncated`.
 */
blocks: ({
[k: string]: unknown
}[] | null)
result_bytes: (number | null)
/**
 * Code of the error catalogue, of a refused call.
 */
code: (string | null)
ok: (boolean | null)
reason: (string | null)
/**
 * null (never 0) unless the call was scored.
 */
reward: (number | null)
finished: boolean
failure_class: (("ok" | "policy" | "environment" | "infrastructure") | null)
started_at: string
ended_at: (string | null)
latency_ms: (number | null)
/**
 * Its stream broke, and its client has not come back yet.
 */
undelivered: boolean
/**
 * Input or result is longer than 64 kB here; the route of the one call has the whole.
 */
truncated: boolean
}
"GET /v1/sessions/{sid}/calls": {
calls: {
task_id: string
/**
 * Rises with every call of a session.
 */
seq: number
kind: ("call" | "score_group")
tool: string
/**
 * `at_call` of a fork that begins with the calls up to this one; null for a call that is no part of a replay.
 */
at_call: (number | null)
/**
 * JSON text as sent, secrets hidden; cut when `truncated`.
 */
input: string
input_bytes: number
state: ("running" | "result" | "tool_failed" | "refused")
/**
 * Text of the tool, or how it failed; the beginning of the stored JSON when `truncated`; null while it runs.
 */
text: (string | null)
/**
 * Output of the tool; null for failures and when `truncated`.
 */
blocks: ({
[k: string]: unknown
}[] | null)
result_bytes: (number | null)
/**
 * Code of the error catalogue, of a refused call.
 */
code: (string | null)
ok: (boolean | null)
reason: (string | null)
/**
 * null (never 0) unless the call was scored.
 */
reward: (number | null)
finished: boolean
failure_class: (("ok" | "policy" | "environment" | "infrastructure") | null)
started_at: string
ended_at: (string | null)
latency_ms: (number | null)
/**
 * Its stream broke, and its client has not come back yet.
 */
undelivered: boolean
/**
 * Input or result is longer than 64 kB here; the route of the one call has the whole.
 */
truncated: boolean
}[]
next_after: (number | null)
}
"POST /v1/sessions/{sid}/fork": {
sid: string
forked_from: string
at_call: number
}
"POST /v1/sessions/{sid}/rollout": {
sid: string
/**
 * The run that it was kept in first, whatever a repeated request names.
 */
run: string
rollout_id: string
rollout: (string | null)
}
"GET /v1/sessions/{sid}/state": {
/**
 * `environment`: as its server answers OpenEnv’s `state`; `ledger`: what this service knows of the episode.
 */
source: ("environment" | "ledger")
/**
 * `episode_id` and `step_count`, and whatever the environment adds.
 */
state: {
[k: string]: unknown
}
}
"DELETE /v1/sessions/{sid}": {
sid: string
state: ("reserved" | "starting" | "ready" | "restoring" | "finished" | "closed" | "failed" | "expired" | "lost" | "diverged")
/**
 * It has not ended: it may hold a slot.
 */
live: boolean
/**
 * `owner/name`; null until the session is bound to one.
 */
environment: (string | null)
/**
 * Number of the version of the environment; also null when that was deleted.
 */
environment_version: (number | null)
variant: (string | null)
/**
 * The API process that holds its live connection; null where any process serves it.
 */
owner_replica: (string | null)
holder: {
user: (string | null)
/**
 * null for a browser session.
 */
key: ({
id: string
name: string
prefix: string
} | null)
}
created_at: string
/**
 * Last ping or request.
 */
last_seen_at: string
/**
 * Last request other than a ping.
 */
last_request_at: string
/**
 * When it ends without further activity; null once ended.
 */
expires_at: (string | null)
ended_at: (string | null)
heartbeat_timeout_s: number
idle_timeout_s: number
failure: ({
code: string
detail: string
} | null)
failure_class: (("ok" | "policy" | "environment" | "infrastructure") | null)
/**
 * The run that the session is written to as a rollout.
 */
recording: ({
run: string
rollout_id: string
name: (string | null)
step: (number | null)
split: (string | null)
task_index: (number | null)
metadata: ({
[k: string]: unknown
} | null)
} | null)
forked_from: ({
sid: string
at_call: number
} | null)
/**
 * How it came by its slot; null where it never asked for one.
 */
queue: ({
queued_at: (string | null)
waiting: boolean
admitted_at: (string | null)
} | null)
num_calls: number
last_call: ({
tool: string
started_at: string
/**
 * `running`, or how it ended.
 */
state: ("running" | "result" | "tool_failed" | "refused")
failure_class: (("ok" | "policy" | "environment" | "infrastructure") | null)
} | null)
/**
 * What was asked for, secrets hidden; null while reserved.
 */
task: ({
[k: string]: unknown
} | null)
/**
 * Its environment declares itself deterministic: the session outlives its process and can be forked.
 */
deterministic: boolean
calls: {
total: number
running: number
ok: number
policy: number
environment: number
infrastructure: number
}
/**
 * Sum over `ok` calls that were scored; null (never 0) without any.
 */
total_reward: (number | null)
}
"GET /v1/sessions/{sid}": {
sid: string
state: ("reserved" | "starting" | "ready" | "restoring" | "finished" | "closed" | "failed" | "expired" | "lost" | "diverged")
/**
 * It has not ended: it may hold a slot.
 */
live: boolean
/**
 * `owner/name`; null until the session is bound to one.
 */
environment: (string | null)
/**
 * Number of the version of the environment; also null when that was deleted.
 */
environment_version: (number | null)
variant: (string | null)
/**
 * The API process that holds its live connection; null where any process serves it.
 */
owner_replica: (string | null)
holder: {
user: (string | null)
/**
 * null for a browser session.
 */
key: ({
id: string
name: string
prefix: string
} | null)
}
created_at: string
/**
 * Last ping or request.
 */
last_seen_at: string
/**
 * Last request other than a ping.
 */
last_request_at: string
/**
 * When it ends without further activity; null once ended.
 */
expires_at: (string | null)
ended_at: (string | null)
heartbeat_timeout_s: number
idle_timeout_s: number
failure: ({
code: string
detail: string
} | null)
failure_class: (("ok" | "policy" | "environment" | "infrastructure") | null)
/**
 * The run that the session is written to as a rollout.
 */
recording: ({
run: string
rollout_id: string
name: (string | null)
step: (number | null)
split: (string | null)
task_index: (number | null)
metadata: ({
[k: string]: unknown
} | null)
} | null)
forked_from: ({
sid: string
at_call: number
} | null)
/**
 * How it came by its slot; null where it never asked for one.
 */
queue: ({
queued_at: (string | null)
waiting: boolean
admitted_at: (string | null)
} | null)
num_calls: number
last_call: ({
tool: string
started_at: string
/**
 * `running`, or how it ended.
 */
state: ("running" | "result" | "tool_failed" | "refused")
failure_class: (("ok" | "policy" | "environment" | "infrastructure") | null)
} | null)
/**
 * What was asked for, secrets hidden; null while reserved.
 */
task: ({
[k: string]: unknown
} | null)
/**
 * Its environment declares itself deterministic: the session outlives its process and can be forked.
 */
deterministic: boolean
calls: {
total: number
running: number
ok: number
policy: number
environment: number
infrastructure: number
}
/**
 * Sum over `ok` calls that were scored; null (never 0) without any.
 */
total_reward: (number | null)
}
"GET /v1/sessions": {
sessions: {
sid: string
state: ("reserved" | "starting" | "ready" | "restoring" | "finished" | "closed" | "failed" | "expired" | "lost" | "diverged")
/**
 * It has not ended: it may hold a slot.
 */
live: boolean
/**
 * `owner/name`; null until the session is bound to one.
 */
environment: (string | null)
/**
 * Number of the version of the environment; also null when that was deleted.
 */
environment_version: (number | null)
variant: (string | null)
/**
 * The API process that holds its live connection; null where any process serves it.
 */
owner_replica: (string | null)
holder: {
user: (string | null)
/**
 * null for a browser session.
 */
key: ({
id: string
name: string
prefix: string
} | null)
}
created_at: string
/**
 * Last ping or request.
 */
last_seen_at: string
/**
 * Last request other than a ping.
 */
last_request_at: string
/**
 * When it ends without further activity; null once ended.
 */
expires_at: (string | null)
ended_at: (string | null)
heartbeat_timeout_s: number
idle_timeout_s: number
failure: ({
code: string
detail: string
} | null)
failure_class: (("ok" | "policy" | "environment" | "infrastructure") | null)
/**
 * The run that the session is written to as a rollout.
 */
recording: ({
run: string
rollout_id: string
name: (string | null)
step: (number | null)
split: (string | null)
task_index: (number | null)
metadata: ({
[k: string]: unknown
} | null)
} | null)
forked_from: ({
sid: string
at_call: number
} | null)
/**
 * How it came by its slot; null where it never asked for one.
 */
queue: ({
queued_at: (string | null)
waiting: boolean
admitted_at: (string | null)
} | null)
num_calls: number
last_call: ({
tool: string
started_at: string
/**
 * `running`, or how it ended.
 */
state: ("running" | "result" | "tool_failed" | "refused")
failure_class: (("ok" | "policy" | "environment" | "infrastructure") | null)
} | null)
}[]
next_cursor: (string | null)
}
"POST /v1/sessions": {
sid: string
state: ("reserved" | "starting" | "ready" | "restoring" | "finished" | "closed" | "failed" | "expired" | "lost" | "diverged")
/**
 * It has not ended: it may hold a slot.
 */
live: boolean
/**
 * `owner/name`; null until the session is bound to one.
 */
environment: (string | null)
/**
 * Number of the version of the environment; also null when that was deleted.
 */
environment_version: (number | null)
variant: (string | null)
/**
 * The API process that holds its live connection; null where any process serves it.
 */
owner_replica: (string | null)
holder: {
user: (string | null)
/**
 * null for a browser session.
 */
key: ({
id: string
name: string
prefix: string
} | null)
}
created_at: string
/**
 * Last ping or request.
 */
last_seen_at: string
/**
 * Last request other than a ping.
 */
last_request_at: string
/**
 * When it ends without further activity; null once ended.
 */
expires_at: (string | null)
ended_at: (string | null)
heartbeat_timeout_s: number
idle_timeout_s: number
failure: ({
code: string
detail: string
} | null)
failure_class: (("ok" | "policy" | "environment" | "infrastructure") | null)
/**
 * The run that the session is written to as a rollout.
 */
recording: ({
run: string
rollout_id: string
name: (string | null)
step: (number | null)
split: (string | null)
task_index: (number | null)
metadata: ({
[k: string]: unknown
} | null)
} | null)
forked_from: ({
sid: string
at_call: number
} | null)
/**
 * How it came by its slot; null where it never asked for one.
 */
queue: ({
queued_at: (string | null)
waiting: boolean
admitted_at: (string | null)
} | null)
num_calls: number
last_call: ({
tool: string
started_at: string
/**
 * `running`, or how it ended.
 */
state: ("running" | "result" | "tool_failed" | "refused")
failure_class: (("ok" | "policy" | "environment" | "infrastructure") | null)
} | null)
/**
 * What was asked for, secrets hidden; null while reserved.
 */
task: ({
[k: string]: unknown
} | null)
/**
 * Its environment declares itself deterministic: the session outlives its process and can be forked.
 */
deterministic: boolean
calls: {
total: number
running: number
ok: number
policy: number
environment: number
infrastructure: number
}
/**
 * Sum over `ok` calls that were scored; null (never 0) without any.
 */
total_reward: (number | null)
}
"GET /v1/shared": {
rollout: string
message: (number | null)
expires_at: string
}
"DELETE /v1/shares/{id}": {
deleted: true
}
"GET /v1/shares": {
/**
 * Those that have not expired; newest first, at most 500.
 */
shares: {
id: string
rollout: string
message: (number | null)
author: string
created_at: string
expires_at: string
}[]
}
"POST /v1/shares": {
id: string
rollout: string
message: (number | null)
author: string
created_at: string
expires_at: string
/**
 * The link; shown this once.
 */
url: string
}
"GET /v1/slots": {
environments: {
environment: string
version: (number | null)
/**
 * It is your organisation’s: sessions of others are listed, too.
 */
managed: boolean
/**
 * Sessions at the same time on all replicas; null = no limit.
 */
capacity: (number | null)
/**
 * Slots that are taken, by anybody.
 */
used: number
/**
 * Sessions that wait for one, of anybody.
 */
waiting: number
sessions: {
/**
 * Like holder and run: null for a session of another organisation.
 */
sid: (string | null)
state: ("reserved" | "starting" | "ready" | "restoring" | "finished" | "closed" | "failed" | "expired" | "lost" | "diverged")
waiting: boolean
org: string
holder: ({
user: (string | null)
/**
 * null for a browser session.
 */
key: ({
id: string
name: string
prefix: string
} | null)
} | null)
owner_replica: (string | null)
created_at: string
last_seen_at: string
last_call: ({
tool: string
started_at: string
/**
 * `running`, or how it ended.
 */
state: ("running" | "result" | "tool_failed" | "refused")
failure_class: (("ok" | "policy" | "environment" | "infrastructure") | null)
} | null)
run: (string | null)
/**
 * null for a task by value, too.
 */
task: ({
split: string
index: number
} | null)
}[]
}[]
}
"GET /v1/text-sessions/{id}/metrics": {
turns: number
total_reward: number
/**
 * Calls that ran or failed; not the texts that held none.
 */
num_rewards: number
}
"POST /v1/text-sessions/{id}/step": {
turn: number
observations: {
role: "user"
content: string
}[]
reward: number
done: boolean
metadata: {
[k: string]: unknown
}
}
"DELETE /v1/text-sessions/{id}": {
id: string
}
"GET /v1/text-sessions/{id}": {
id: string
environment: string
/**
 * What is looked for in a text: the first `<tool_call>` with JSON, or the last `<action>`.
 */
parse: ("tool_call" | "action")
max_turns: number
turns: number
done: boolean
}
"POST /v1/text-sessions": {
id: string
prompt: {
role: string
[k: string]: unknown
}[]
metadata: {
[k: string]: unknown
}
max_turns: number
tools: {
name: string
[k: string]: unknown
}[]
}
"POST /v1/traces": {
/**
 * Spans that were not kept, and why; with 0 rejected spans a warning. Absent when everything was kept.
 */
partialSuccess?: {
/**
 * A 64-bit number as text, as in all OTLP/JSON.
 */
rejectedSpans: string
errorMessage: string
}
}
"DELETE /v1/views/{id}": {
deleted: true
}
"PUT /v1/views/{id}": {
id: string
run: (string | null)
name: string
/**
 * In its canonical spelling.
 */
query: string
lens: (string | null)
state: {
[k: string]: unknown
}
author: string
created_at: string
}
"GET /v1/views": {
views: {
id: string
run: (string | null)
name: string
/**
 * In its canonical spelling.
 */
query: string
lens: (string | null)
state: {
[k: string]: unknown
}
author: string
created_at: string
}[]
}
"POST /v1/views": {
id: string
run: (string | null)
name: string
/**
 * In its canonical spelling.
 */
query: string
lens: (string | null)
state: {
[k: string]: unknown
}
author: string
created_at: string
}
}

export interface ApiBodies {
"POST /v1/annotations": {
rollout: string
/**
 * First message that it is about; null: the whole rollout.
 */
from_index?: (number | null)
/**
 * Last one; null: the first alone.
 */
to_index?: (number | null)
verdict?: (("good" | "bad" | "exploit") | null)
score?: (number | null)
tag?: (string | null)
note?: (string | null)
}
"POST /v1/environments/{owner}/{name}/versions": {
source: ({
kind: "remote"
url: string
} | {
kind: "openenv"
url: string
} | {
kind: "mcp"
url: string
} | {
kind: "mcp"
/**
 * @minItems 1
 * @maxItems 100
 */
command: string[]
})
/**
 * Uploaded tasks that it has; null: those of its server; left out: as the version before.
 */
task_set?: (string | null)
}
"POST /v1/environments": {
name: string
namespace?: (string | null)
description?: string
/**
 * Only the organisation can see and play it
 */
isPrivate?: boolean
isHarbor?: boolean
readme?: (string | null)
source?: ({
kind: "remote"
url: string
} | {
kind: "openenv"
url: string
} | {
kind: "mcp"
url: string
} | {
kind: "mcp"
/**
 * @minItems 1
 * @maxItems 100
 */
command: string[]
})
}
"POST /v1/exports/tasks": {
/**
 * `owner/name`, in the order of the rows
 * 
 * @minItems 1
 * @maxItems 50
 */
environments: string[]
split?: string
/**
 * Per environment
 */
max_tasks?: number
format?: ("jsonl" | "parquet")
prompt_format?: ("text" | "messages")
}
"POST /v1/exports": {
/**
 * Name or id; absent = all runs
 */
run?: string
/**
 * The query language of the Explorer; empty = everything
 */
query?: string
format?: ("parquet" | "rollouts-parquet" | "jsonl" | "openai" | "hf" | "sft" | "preference" | "curriculum")
/**
 * Whose reading of a rollout the columns lens_reward, lens_success and lens_counted are; the others are facts, which no lens changes
 */
lens?: ("canonical" | "skyrl" | "verl" | "trl" | "prime-rl" | "slime" | "tinker" | "rllm")
/**
 * Replace what looks like a credential
 */
redact?: boolean
/**
 * Rows of a file at most
 */
shard_rows?: number
/**
 * A file ends after the row by which it reaches so many bytes
 */
shard_bytes?: number
}
"POST /v1/files/upload-urls": {
environmentId: string
/**
 * @minItems 1
 * @maxItems 50
 */
files: {
fileName: string
contentType?: string
}[]
}
"POST /v1/keys/rotate-secret": {
/**
 * Signed URLs of before stop working at once: for a key that somebody else may know.
 */
drop_previous?: boolean
}
"POST /v1/keys": {
name: string
/**
 * @minItems 1
 */
scopes?: ("sessions" | "environments" | "rollouts" | "keys")[]
/**
 * Sessions open at the same time; null = the default of the server
 */
max_sessions?: (number | null)
/**
 * When the key stops working; null = never
 */
expires_at?: (string | null)
}
"POST /v1/login": {
key: string
}
"PATCH /v1/members/{id}": {
/**
 * owner: also settings, members and keys of the organisation.
 */
role: ("owner" | "member")
}
"POST /v1/members": {
name: string
role?: ("owner" | "member")
}
"PATCH /v1/organisation": {
retention_days?: (number | null)
max_sessions?: (number | null)
}
"POST /v1/organisations": {
name: string
}
"POST /v1/rollouts": {
events: {
eventType: ("rollout" | "message" | "rollout_update")
eventId: string
[k: string]: unknown
}[]
/**
 * The events were recorded before and are imported now: none of them counts as `late` (stamped over a minute before it came).
 */
history?: boolean
}
"PATCH /v1/runs/{id}": {
/**
 * All of them: what is left out is found out again. Everything stored is normalised anew.
 */
settings?: {
/**
 * A regex of RE2, matched in `rolloutName`; named groups task, step, sample.
 */
nameRegex?: (string | null)
/**
 * Samples per prompt.
 */
n?: (number | null)
/**
 * Prompts per training step.
 */
batchSize?: (number | null)
maxTurns?: (number | null)
rewardReduce?: (("sum" | "last" | "max" | "mean" | "min") | null)
nonterminalReward?: (number | null)
minReward?: (number | null)
maxReward?: (number | null)
successThreshold?: (number | null)
source?: (("skyrl" | "slime/miles" | "tinker" | "firehorse" | "palestra" | "verl" | "trl" | "prime-rl" | "rllm" | "generic") | null)
}
/**
 * null: the organisation’s rule.
 */
retention_days?: (number | null)
/**
 * @maxItems 50
 */
tags?: string[]
}
"POST /v1/sessions/{sid}/fork": {
/**
 * How many calls to begin with; absent = all that have ended.
 */
at_call?: (number | null)
run?: ({
/**
 * Name of the run.
 */
name: string
/**
 * Name of the rollout.
 */
rollout?: (string | null)
step?: (number | null)
split?: (string | null)
task_index?: (number | null)
metadata?: ({
[k: string]: unknown
} | null)
} | null)
}
"POST /v1/sessions/{sid}/rollout": {
/**
 * Name of the run; made unless it is there.
 */
run?: string
/**
 * Name of the rollout.
 */
rollout?: (string | null)
}
"POST /v1/sessions": {
/**
 * `owner/name`, `owner/name@3`, or a bare name of your own.
 */
environment: string
variant?: (string | null)
/**
 * The task by value; else name `split` and `index`.
 */
task_spec?: {
[k: string]: unknown
}
split?: string
index?: number
toolset_name?: (string | null)
/**
 * Given to the environment only, encrypted at rest, erased at the end.
 */
secrets?: ({
[k: string]: string | {
value: string
allowed_domains?: string[]
}
} | null)
run?: ({
/**
 * Name of the run.
 */
name: string
/**
 * Name of the rollout.
 */
rollout?: (string | null)
step?: (number | null)
split?: (string | null)
task_index?: (number | null)
metadata?: ({
[k: string]: unknown
} | null)
} | null)
/**
 * Chosen by a client that wants to repeat the request when its answer is lost.
 */
sid?: string
}
"POST /v1/shares": {
rollout: string
/**
 * Index of the message that it opens at.
 */
message?: (number | null)
expires_in_days?: number
}
"POST /v1/text-sessions/{id}/step": {
/**
 * What the model wrote.
 */
text: string
/**
 * Number of the turn, from 1: with it the same request may be sent again. Absent: the next turn.
 */
turn?: (number | null)
/**
 * What takes longer is answered by `turn_running`.
 */
wait_s?: number
}
"POST /v1/text-sessions": {
/**
 * `owner/name`, `owner/name@3`, or a bare name of your own.
 */
environment: string
variant?: (string | null)
/**
 * The task by value; else name `split` and `index`.
 */
task_spec?: {
[k: string]: unknown
}
split?: string
index?: number
prompt?: (({
role: string
[k: string]: unknown
}[] | string) | null)
/**
 * What is looked for in a text: the first `<tool_call>` with JSON, or the last `<action>`.
 */
parse?: ("tool_call" | "action")
/**
 * Absent: 10 with `tool_call`, 1 with `action`, as SkyRL has it.
 */
max_turns?: number
toolset?: (string | null)
/**
 * Given to the environment only, encrypted at rest, erased at the end.
 */
secrets?: ({
[k: string]: string | {
value: string
allowed_domains?: string[]
}
} | null)
recording?: ({
/**
 * Name of the run.
 */
name: string
/**
 * Name of the rollout.
 */
rollout?: (string | null)
step?: (number | null)
split?: (string | null)
task_index?: (number | null)
metadata?: ({
[k: string]: unknown
} | null)
} | null)
/**
 * Chosen by a client that wants to repeat the request when its answer is lost.
 */
id?: string
}
"POST /v1/traces": {
/**
 * Resource, scope and span lists as OTLP/JSON has them.
 */
resourceSpans?: {
[k: string]: unknown
}[]
[k: string]: unknown
}
"PUT /v1/views/{id}": {
/**
 * Id or name; null: for every run.
 */
run?: (string | null)
name: string
query?: string
lens?: (string | null)
/**
 * Columns, sort and what else the page keeps; at most 16 kB.
 */
state?: {
[k: string]: unknown
}
}
"POST /v1/views": {
/**
 * Id or name; null: for every run.
 */
run?: (string | null)
name: string
query?: string
lens?: (string | null)
/**
 * Columns, sort and what else the page keeps; at most 16 kB.
 */
state?: {
[k: string]: unknown
}
}
}
