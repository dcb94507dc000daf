import { STATUS_CODES } from 'node:http';
import { type ErrorCode, PalestraError } from '@palestra/protocol';
import { detailIn } from '@palestra/outbound';

/** A complete response of an environment server. */
export interface UpstreamAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

const header = (answer: UpstreamAnswer, name: string): string | undefined => {
  const value = answer.headers[name];
  return Array.isArray(value) ? value[0] : value;
};

/** Seconds. Clients ignore the date form (docs/reference/ors.md#headers). */
export function retryAfterSeconds(answer: UpstreamAnswer): number | undefined {
  const text = header(answer, 'retry-after');
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

/** The server did not run the request; repeat it later (docs/reference/ors.md#headers). */
export function isStarting(answer: UpstreamAnswer): boolean {
  return [429, 502, 503, 504].includes(answer.status) && header(answer, 'x-backend-state') === 'starting';
}

/** FastAPI's `detail`, otherwise the name of the status. Other bodies, such as a proxy's page, are not passed on. */
export function detailOf(answer: UpstreamAnswer): string | object[] {
  return detailIn(answer.text) ?? STATUS_CODES[answer.status] ?? `HTTP ${answer.status}`;
}

const codeByDetail: [pattern: RegExp, code: ErrorCode][] = [
  [/^unknown environment /, 'unknown_variant'],
  [/^Invalid split/, 'invalid_split'],
  [/^Invalid index range/, 'invalid_index_range'],
  [/^Invalid index/, 'invalid_index'],
  [/^list_tasks is not supported/, 'tasks_not_listable'],
  [/^Session already exists/, 'session_exists'],
  [/toolset/i, 'unknown_toolset'],
  [/does not implement score_group/, 'score_group_unsupported'],
];

function codeOf(status: number, detail: string | object[]): ErrorCode {
  const text = typeof detail === 'string' ? detail : '';
  if (status === 400 || status === 404) {
    const known = codeByDetail.find(([pattern]) => pattern.test(text));
    if (known) return known[1];
  }
  if (status === 410) return 'session_deleted';
  if (status === 422) return 'invalid_body';
  if (status === 429) return 'capacity_exhausted';
  if (status === 502 || status === 503) return 'backend_unreachable';
  if (status === 504) return 'backend_timeout';
  return status >= 500 ? 'environment_failed' : 'invalid_request';
}

/** The server's error with its status and text. */
export function relayedError(answer: UpstreamAnswer): PalestraError {
  if (answer.status < 400) {
    return new PalestraError('backend_invalid', { detail: `The environment server answered ${answer.status} where a result was due.` });
  }
  const detail = detailOf(answer);
  return new PalestraError(codeOf(answer.status, detail), {
    detail,
    status: answer.status,
    retryAfterSeconds: retryAfterSeconds(answer),
    backendStarting: isStarting(answer),
    relayed: true,
  });
}

/** Whether the server has no such route (its framework's 404 or 405). */
export function isMissingRoute(error: unknown): boolean {
  return (
    error instanceof PalestraError &&
    (error.status === 404 || error.status === 405) &&
    /^(Not Found|Method Not Allowed)$/.test(error.message)
  );
}

/** The server does not know a session that it opened: it restarted or dropped the session. */
export const isUnknownSession = (answer: UpstreamAnswer): boolean =>
  answer.status === 404 && detailOf(answer) === 'Active environment not found';

export function unknownSession(): PalestraError {
  return new PalestraError('session_lost', {
    detail: 'Session lost: the environment server no longer knows it (it restarted or dropped the session). This request did not run.',
  });
}
