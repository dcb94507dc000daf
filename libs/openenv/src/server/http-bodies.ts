import { isObject, type JsonObject, type JsonValue, PalestraError, stringifyJson, toPlainNumber } from '@palestra/protocol';
import type { Episode } from './episode.port.ts';
import { type Issue, issue, OpenEnvError } from '../wire/errors.ts';
import { bodyOf, type Reply } from '../wire/client-replies.ts';

/**
 * Bodies of the HTTP routes `/reset` and `/step` (docs/reference/openenv.md#http-routes). Errors are `PalestraError`s with the 422 lists of
 * OpenEnv's server.
 */

type BodyIssue = Issue & { ctx?: JsonObject };

function bodyObject(body: JsonValue): JsonObject {
  if (isObject(body)) return body;
  const missing = issue('missing', ['body'], null);
  const wrong = issue(
    'model_attributes_type',
    ['body'],
    body ?? null,
    'Input should be a valid dictionary or object to extract fields from',
  );
  throw refused([body === undefined ? missing : wrong]);
}

const refused = (issues: BodyIssue[]) => new PalestraError('invalid_body', { detail: JSON.parse(stringifyJson(issues)) as object[] });

/** Keywords of a reset; no body means no keywords. */
export function readResetBody(body: JsonValue): JsonObject {
  if (body === undefined || body === null) return {};
  const data = bodyObject(body);
  const issues: BodyIssue[] = [];
  const { seed, episode_id: id } = data;
  if (seed !== undefined && seed !== null) issues.push(...seedIssues(seed));
  if (id !== undefined && id !== null) issues.push(...textIssues('episode_id', id));
  if (issues.length > 0) throw refused(issues);
  return data;
}

function seedIssues(seed: JsonValue): BodyIssue[] {
  const loc = ['body', 'seed'];
  const number = typeof seed === 'string' && /^\s*[-+]?\d+\s*$/.test(seed) ? Number(seed) : toPlainNumber(seed);
  if (number === null) return [issue(typeof seed === 'string' ? 'int_parsing' : 'int_type', loc, seed)];
  if (!Number.isInteger(number)) return [issue('int_from_float', loc, seed)];
  const msg = 'Input should be greater than or equal to 0';
  return number < 0 ? [{ ...issue('greater_than_equal', loc, seed, msg), ctx: { ge: 0 } }] : [];
}

function textIssues(field: string, value: JsonValue): BodyIssue[] {
  const loc = ['body', field];
  if (typeof value !== 'string') return [issue('string_type', loc, value)];
  const msg = 'String should have at most 255 characters';
  return value.length > 255 ? [{ ...issue('string_too_long', loc, value, msg), ctx: { max_length: 255 } }] : [];
}

export function readStepBody(body: JsonValue): JsonObject {
  const data = bodyObject(body);
  const issues: BodyIssue[] = [];
  const { action, timeout_s: timeout, request_id: id } = data;
  if (action === undefined) issues.push(issue('missing', ['body', 'action'], data));
  else if (!isObject(action)) issues.push(issue('dict_type', ['body', 'action'], action));
  if (timeout !== undefined && timeout !== null) issues.push(...timeoutIssues(timeout));
  if (id !== undefined && id !== null) issues.push(...textIssues('request_id', id));
  if (issues.length > 0) throw refused(issues);
  return action as JsonObject;
}

function timeoutIssues(timeout: JsonValue): BodyIssue[] {
  const loc = ['body', 'timeout_s'];
  const number = typeof timeout === 'string' && timeout.trim() !== '' ? Number(timeout) : toPlainNumber(timeout);
  if (number === null || Number.isNaN(number)) return [issue(typeof timeout === 'string' ? 'float_parsing' : 'float_type', loc, timeout)];
  return number > 0 ? [] : [{ ...issue('greater_than', loc, timeout, 'Input should be greater than 0'), ctx: { gt: 0 } }];
}

/** The HTTP error for an error frame. */
export function httpError(error: unknown): unknown {
  if (!(error instanceof OpenEnvError)) return error;
  if (error.code === 'VALIDATION_ERROR') return new PalestraError('invalid_body', { detail: error.extra['errors'] as object[] });
  if (error.code === 'CAPACITY_REACHED') return new PalestraError('capacity_exhausted', { detail: error.message, retryAfterSeconds: 5 });
  if (error.cause instanceof PalestraError) return error.cause;
  return new PalestraError('environment_failed', { detail: error.message, cause: error });
}

/** Plays one request on its own episode, then ends the episode. */
export async function playOnce(episode: Episode, play: (episode: Episode) => Promise<Reply> | Reply): Promise<string> {
  try {
    return httpBodyOf(await play(episode));
  } catch (error) {
    throw httpError(error);
  } finally {
    await episode.end();
  }
}

export function httpBodyOf(reply: Reply): string {
  return reply.kind === 'observation' ? bodyOf(reply) : reply.text;
}
