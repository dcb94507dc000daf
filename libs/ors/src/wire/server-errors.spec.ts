import { describe, expect, it } from 'vitest';
import { relayedError } from './server-errors.ts';

type Answer = Parameters<typeof relayedError>[0];
const answer = (status: number, detail: unknown): Answer =>
  ({ status, text: JSON.stringify({ detail }), headers: {} }) as unknown as Answer;

describe('relayedError keeps the text of the environment and finds its code', () => {
  it.each([
    [400, 'Invalid index range', 'invalid_index_range'],
    [400, 'Invalid index', 'invalid_index'],
    [429, 'at maximum capacity', 'capacity_exhausted'],
    [504, 'upstream request timeout', 'backend_timeout'],
    [503, 'no healthy upstream', 'backend_unreachable'],
    [410, 'Session deleted', 'session_deleted'],
    [500, 'ValueError: no', 'environment_failed'],
    [418, 'short and stout', 'invalid_request'],
  ])('%i %s is %s', (status, detail, code) => {
    expect(relayedError(answer(status, detail))).toMatchObject({ code, status, detail });
  });
});
