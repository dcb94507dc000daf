/**
 * The public errors of Palestra. `status` is the HTTP status. `retryable`: the same request may succeed later. `text` tells the user what
 * to do and is the default `detail`.
 */
export const errorCatalogue = {
  unauthorized: {
    status: 401,
    retryable: false,
    text: 'Missing or unknown API key. Send it as the X-API-Key header (OPENREWARD_API_KEY).',
  },
  key_revoked: { status: 401, retryable: false, text: 'This API key was revoked. Create another one under /keys.' },
  key_expired: { status: 401, retryable: false, text: 'This API key has expired. Create another one under /keys.' },
  browser_session_not_found: { status: 404, retryable: false, text: 'No such signed-in browser.' },
  forbidden: { status: 403, retryable: false, text: 'This API key does not have permission for this request.' },
  scope_missing: { status: 403, retryable: false, text: 'This API key lacks the scope that this route needs.' },
  invalid_request: { status: 400, retryable: false, text: 'The request is not valid.' },
  invalid_body: { status: 422, retryable: false, text: 'The request body does not have the expected shape.' },
  invalid_query: { status: 422, retryable: false, text: 'The query is not valid. See docs/query.md.' },
  invalid_cursor: { status: 400, retryable: false, text: 'The cursor does not belong to this list. Start again without a cursor.' },
  invalid_json: { status: 422, retryable: false, text: 'The request body is not valid JSON.' },
  body_too_large: { status: 413, retryable: false, text: 'The request body is larger than this route accepts.' },
  unsupported_media_type: {
    status: 415,
    retryable: false,
    text: 'Send traces as application/x-protobuf or application/json (OTLP/HTTP). This server does not support gRPC.',
  },
  route_not_found: { status: 404, retryable: false, text: 'Not Found' },
  method_not_allowed: { status: 405, retryable: false, text: 'Method Not Allowed' },
  deployment_not_found: { status: 404, retryable: false, text: 'Deployment not found.' },
  environment_not_found: {
    status: 404,
    retryable: false,
    text: 'The environment does not exist, or it is private to another organisation.',
  },
  commands_not_allowed: {
    status: 403,
    retryable: false,
    text: 'This server does not start programs for its users. Its operator can allow this with PALESTRA_ALLOW_COMMANDS=1.',
  },
  deploy_not_found: { status: 404, retryable: false, text: 'The environment has no such deploy.' },
  instance_not_found: { status: 404, retryable: false, text: 'The environment has no such instance.' },
  channel_not_found: { status: 404, retryable: false, text: 'The environment has no such channel.' },
  hosting_off: {
    status: 501,
    retryable: false,
    text: 'This server does not run environments. Its operator can allow this with PALESTRA_HOSTING. Or add a running server by its URL.',
  },
  hosting_unsupported: {
    status: 422,
    retryable: false,
    text: 'The engine of this server cannot enforce a setting of the environment. Change the setting, or choose another provider.',
  },
  source_invalid: { status: 422, retryable: false, text: 'The source cannot be deployed.' },
  source_too_large: {
    status: 413,
    retryable: false,
    text: 'The source is larger than this server accepts. Leave files out with .dockerignore.',
  },
  git_link_not_found: { status: 404, retryable: false, text: 'The environment is not linked to a git repository.' },
  webhook_signature_invalid: { status: 401, retryable: false, text: 'The signature of the webhook is missing or wrong.' },
  environment_exists: { status: 409, retryable: false, text: 'An environment with this name already exists. Choose another name.' },
  task_set_not_found: { status: 404, retryable: false, text: 'The environment has no such task set.' },
  task_set_published: {
    status: 409,
    retryable: false,
    text: 'This task set is published and cannot change. Create another one.',
  },
  task_set_in_use: { status: 409, retryable: false, text: 'Versions of this environment use these tasks, and versions cannot change.' },
  invalid_task_file: { status: 422, retryable: false, text: 'A row of the task file is not valid. Nothing was stored.' },
  too_expensive: {
    status: 422,
    retryable: false,
    text: 'Reading or checking this exceeds the time or memory limit of the server. Make it smaller or simpler.',
  },
  unknown_variant: { status: 404, retryable: false, text: 'unknown environment' },
  invalid_split: { status: 400, retryable: false, text: 'Invalid split' },
  invalid_index: { status: 400, retryable: false, text: 'Invalid index' },
  invalid_index_range: { status: 400, retryable: false, text: 'Invalid index range' },
  tasks_not_listable: {
    status: 400,
    retryable: false,
    text: 'list_tasks is not supported for this environment. Use the index-based API (num_tasks + get_task) instead.',
  },
  unknown_toolset: { status: 400, retryable: false, text: 'unknown toolset' },
  session_id_required: { status: 400, retryable: false, text: 'X-Session-ID header is required' },
  session_exists: { status: 400, retryable: false, text: 'Session already exists' },
  session_not_found: { status: 404, retryable: false, text: 'Active environment not found' },
  session_deleted: { status: 410, retryable: false, text: 'Session deleted' },
  session_expired: { status: 410, retryable: false, text: 'Session expired: it sent no ping or request for longer than its idle timeout.' },
  session_lost: {
    status: 410,
    retryable: false,
    text: 'Session lost: the process that ran it died. Its last call may or may not have run.',
  },
  session_diverged: {
    status: 410,
    retryable: false,
    text: 'Session diverged: a call returned a different result when a new process replayed it.',
  },
  session_moved: {
    status: 503,
    retryable: true,
    text: 'The session is moving to another process of this service. The request did not run. Send it again.',
  },
  not_deterministic: {
    status: 409,
    retryable: false,
    text: 'Only sessions of an environment that declares itself deterministic can be forked, because a fork replays their calls.',
  },
  setup_timeout: { status: 504, retryable: false, text: 'The setup of the session took longer than its environment allows.' },
  call_timeout: {
    status: 504,
    retryable: false,
    text: 'The call took longer than its environment allows, and Palestra stopped waiting for it. It may still be running.',
  },
  call_abandoned: {
    status: 410,
    retryable: false,
    text: 'The client disconnected before it received the task id of this call. The tool did not run.',
  },
  setup_failed: { status: 500, retryable: false, text: 'The environment failed while setting up the session.' },
  environment_failed: { status: 500, retryable: false, text: 'The environment raised an error.' },
  isolation_required: {
    status: 403,
    retryable: false,
    text: 'This server cannot isolate programs well enough to run them.',
  },
  environment_starting: { status: 503, retryable: true, text: 'Environment still starting.' },
  instance_failed: {
    status: 503,
    retryable: true,
    text: 'The instances of this environment do not start. Its log has the reason: palestra env logs.',
  },
  capacity_exhausted: { status: 429, retryable: true, text: 'The environment is at maximum capacity.' },
  turn_conflict: {
    status: 409,
    retryable: false,
    text: 'The session has a different turn with this number, or this is not its next turn.',
  },
  turn_running: {
    status: 503,
    retryable: true,
    text: 'The turn is still running. Send it again with the same number and text to keep waiting.',
  },
  too_many_in_flight: {
    status: 429,
    retryable: true,
    text: 'Too many requests on this socket have no response yet, so this one was rejected. Send it again after some responses.',
  },
  rate_limited: {
    status: 429,
    retryable: true,
    text: 'Too many requests without a valid key came from this address. Requests with a valid key still work.',
  },
  limit_reached: {
    status: 429,
    retryable: true,
    text: 'This API key or organisation has reached a limit of this server. Close or delete some, or ask the operator of the server.',
  },
  secrets_invalid: { status: 400, retryable: false, text: 'The X-Secrets header is not a base64-encoded JSON object.' },
  override_not_allowed: {
    status: 400,
    retryable: false,
    text: 'Only the owner of the environment can override these environment variables.',
  },
  score_group_unsupported: { status: 404, retryable: false, text: 'This environment does not implement score_group' },
  messages_unsupported: { status: 404, retryable: false, text: 'Not Found' },
  backend_unreachable: { status: 503, retryable: true, text: 'The environment server could not be reached. Nothing ran.' },
  backend_invalid: { status: 502, retryable: true, text: 'The environment server sent a response that does not follow its protocol.' },
  upstream_address_refused: {
    status: 403,
    retryable: false,
    text: 'This server does not connect to the address of this URL for its users, because it is private, reserved, or a part of this service. Give the environment server a public address, or ask the operator of this service to allow its network (PALESTRA_ALLOW_PRIVATE_UPSTREAMS).',
  },
  answer_too_large: { status: 500, retryable: false, text: 'The response of the environment server is larger than this service reads.' },
  backend_timeout: { status: 504, retryable: true, text: 'The environment server did not respond within the deadline.' },
  run_not_found: { status: 404, retryable: false, text: 'No such run.' },
  group_not_found: { status: 404, retryable: false, text: 'The run has no such group.' },
  task_not_found: { status: 404, retryable: false, text: 'The run has no such task.' },
  owner_required: { status: 403, retryable: false, text: 'Only an owner of the organisation can do this. Ask one of them.' },
  member_not_found: { status: 404, retryable: false, text: 'No such member of the organisation.' },
  user_exists: { status: 409, retryable: false, text: 'A person or an organisation already has this name. Choose another name.' },
  organisation_not_found: {
    status: 404,
    retryable: false,
    text: 'No organisation has this name, or this browser is not signed in as one of its members.',
  },
  organisation_exists: { status: 409, retryable: false, text: 'An organisation or a person already has this name. Choose another name.' },
  name_reserved: { status: 422, retryable: false, text: 'The service uses this name itself. Choose another name.' },
  last_owner: { status: 409, retryable: false, text: 'An organisation needs at least one owner. Make another member an owner first.' },
  share_not_found: { status: 404, retryable: false, text: 'This link is unknown, was revoked, or has expired.' },
  annotation_not_found: { status: 404, retryable: false, text: 'No such annotation.' },
  annotation_of_review: {
    status: 409,
    retryable: false,
    text: 'This annotation is the answer of a review. Its reviewer can change it in the review queue. Deleting the queue deletes it.',
  },
  alert_not_found: { status: 404, retryable: false, text: 'No such alert.' },
  webhook_not_found: { status: 404, retryable: false, text: 'No such webhook.' },
  webhook_disabled: { status: 409, retryable: false, text: 'This webhook is disabled. Enable it first.' },
  delivery_not_found: { status: 404, retryable: false, text: 'No such delivery of this webhook.' },
  view_not_found: { status: 404, retryable: false, text: 'No such saved view.' },
  review_queue_not_found: { status: 404, retryable: false, text: 'No such review queue.' },
  review_item_not_found: { status: 404, retryable: false, text: 'The review queue has no such item. Its rollout may have been erased.' },
  review_item_taken: {
    status: 409,
    retryable: false,
    text: 'Other reviewers already answered this item, so this answer was not stored. Request the next item.',
  },
  review_queue_closed: { status: 409, retryable: false, text: 'This review queue is closed. Its answers cannot change.' },
  message_not_found: { status: 404, retryable: false, text: 'The rollout has no message with this index.' },
  range_not_satisfiable: {
    status: 416,
    retryable: false,
    text: 'The body does not have these bytes. The header Content-Range has its size.',
  },
  rollout_not_found: { status: 404, retryable: false, text: 'No such rollout.' },
  file_not_found: { status: 404, retryable: false, text: 'No such file.' },
  url_expired: { status: 403, retryable: false, text: 'This signed URL has expired or was changed.' },
  export_not_found: { status: 404, retryable: false, text: 'No such export.' },
  key_not_found: { status: 404, retryable: false, text: 'No such API key.' },
  ingest_overloaded: {
    status: 503,
    retryable: true,
    text: 'Too many rollout events are waiting to be stored. Nothing of this batch was stored. Send it again.',
  },
  database_unavailable: {
    status: 503,
    retryable: true,
    text: 'The database does not respond. Nothing was stored. Send the request again.',
  },
  storage_quota_exceeded: {
    status: 403,
    retryable: false,
    text: 'The stored files of this organisation would exceed its quota. Delete some, or ask the operator for more.',
  },
  storage_full: { status: 503, retryable: true, text: 'The disk is full. Nothing was stored.' },
  storage_unavailable: {
    status: 503,
    retryable: true,
    text: 'The object store does not respond. Nothing was stored. Send the request again.',
  },
  shutting_down: { status: 503, retryable: true, text: 'This server is shutting down. Send the request again.' },
  not_available: { status: 501, retryable: false, text: 'This feature is not available yet on this server.' },
  internal_error: { status: 500, retryable: false, text: 'Internal Server Error' },
} as const satisfies Record<string, { status: number; retryable: boolean; text: string }>;

export type ErrorCode = keyof typeof errorCatalogue;

export interface PalestraErrorOptions {
  /** Overrides the text of the catalogue: a string, or for 422 a list of `{type,loc,msg,input}`. */
  detail?: string | object[];
  /** Seconds, sent as `Retry-After`. */
  retryAfterSeconds?: number;
  /** Sends `X-Backend-State: starting`. Only for requests that certainly did not run. */
  backendStarting?: boolean;
  cause?: unknown;
  /** Overrides the status for relayed upstream errors only. */
  status?: number;
  /** The detail is a message of an environment's server. Clients of its sessions see its messages anyway. */
  relayed?: boolean;
}

/** One item of a 422 list as a sentence. */
function problemText(item: object): string {
  const { loc, msg } = item as { loc?: unknown[]; msg?: unknown };
  if (typeof msg !== 'string') return JSON.stringify(item);
  return Array.isArray(loc) && loc.length > 0 ? `${loc.join('.')}: ${msg}` : msg;
}

/** The only error class whose text reaches clients. Rendered by apps/api/src/platform/http/error.filter.ts. */
export class PalestraError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly detail: string | object[];
  readonly retryAfterSeconds: number | undefined;
  readonly backendStarting: boolean;
  readonly relayed: boolean;

  constructor(code: ErrorCode, options: PalestraErrorOptions = {}) {
    const detail = options.detail ?? errorCatalogue[code].text;
    super(typeof detail === 'string' ? detail : detail.map(problemText).join('; '), { cause: options.cause });
    this.name = 'PalestraError';
    this.code = code;
    this.status = options.status ?? errorCatalogue[code].status;
    this.detail = detail;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.backendStarting = options.backendStarting ?? false;
    this.relayed = options.relayed ?? false;
  }

  get retryable(): boolean {
    return errorCatalogue[this.code].retryable;
  }

  /** Body of every error answer. The SDK reads `detail`, the `orwd` CLI reads `message`; `code` is for all. */
  toBody(): { statusCode: number; code: ErrorCode; message: string; detail: string | object[] } {
    return { statusCode: this.status, code: this.code, message: this.message, detail: this.detail };
  }
}
