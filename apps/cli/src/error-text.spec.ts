import { ConnectionError, PalestraApiError } from '@palestra/client';
import { describe, expect, it } from 'vitest';
import { describeError } from './error-text.ts';

const refused = (detail: string, status = 422) => describeError(new PalestraApiError('invalid_query', status, detail));

describe('the error text of the command line', () => {
  it('lists the reasons of a refused request', () => {
    const detail = [
      { type: 'value_error', loc: ['query', 'q', 0], msg: 'There is no key stepp:. Did you mean step:?', suggestion: 'step' },
      { type: 'value_error', loc: ['query', 'limit'], msg: 'Expected a number.' },
    ];
    expect(refused(JSON.stringify(detail))).toBe('There is no key stepp:. Did you mean step:? limit: Expected a number.');
  });
  it('is the detail if it is not a list of reasons', () => {
    for (const detail of ['No such run.', '[]', '{"a":1}', '[1]', '"quoted"', '[null]']) expect(refused(detail)).toBe(detail);
    expect(refused('No key.', 401)).toBe('No key. Is PALESTRA_API_KEY (or OPENREWARD_API_KEY) set?');
  });
  it('names the variable with the URL of an unreachable server', () => {
    expect(describeError(new ConnectionError('/v1/runs: connect ECONNREFUSED 127.0.0.1:1'))).toBe(
      '/v1/runs: connect ECONNREFUSED 127.0.0.1:1. Is the server running? PALESTRA_URL (or OPENREWARD_URL) sets its address.',
    );
  });
  it('has no control characters, and keeps the lines of a program that ended', () => {
    expect(refused('a\u001b[31mb')).toBe('a [31mb');
    expect(describeError(new Error('ended with 1\nNo module named x'))).toBe('ended with 1\nNo module named x');
  });
});
