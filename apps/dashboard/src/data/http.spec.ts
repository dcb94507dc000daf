import { expect, test } from 'vitest';
import { ApiError, errorInstead, toError } from './http.ts';

const refusal = (status: number, body: object) => toError(new Response(JSON.stringify(body), { status }));

test('an error of the server has the id of its log entry', async () => {
  const body = { statusCode: 500, code: 'internal_error', message: 'Internal Server Error', detail: 'Internal Server Error', id: 'a1-b2' };
  expect(await refusal(500, body)).toMatchObject({
    status: 500,
    code: 'internal_error',
    message: 'Internal Server Error (error id a1-b2)',
    id: 'a1-b2',
  });
});

test('a refusal has a code and no id; a response that is not from the API has its status as code', async () => {
  expect(await refusal(404, { code: 'run_not_found', message: 'no such run', detail: 'no such run' })).toMatchObject({
    code: 'run_not_found',
    message: 'no such run',
    id: null,
  });
  expect(await toError(new Response('<html>', { status: 502, statusText: 'Bad Gateway' }))).toMatchObject({
    code: 'http_502',
    message: 'The server answered 502 Bad Gateway',
    id: null,
  });
});

test('a list of issues is one sentence with the field of each', async () => {
  const detail = [
    { type: 'missing', loc: ['body', 'messages', 0, 'role'], msg: 'Field required', input: null },
    { type: 'json_invalid', loc: ['body'], msg: 'JSON decode error', input: {} },
  ];
  expect((await refusal(422, { code: 'invalid_body', message: 'The body is not valid.', detail })).message).toBe(
    'messages.0.role: Field required; JSON decode error',
  );
});

test('what was read stays on the page while the server does not answer, and not after a refusal', () => {
  const [away, starting, busy] = [0, 502, 429].map((status) => new ApiError(status, 'code', 'message'));
  for (const error of [away!, starting!, busy!]) {
    expect(errorInstead({ data: {}, error })).toBeNull();
    expect(errorInstead({ data: undefined, error })).toBe(error);
  }
  for (const status of [401, 403, 404, 500]) {
    const error = new ApiError(status, 'code', 'message');
    expect(errorInstead({ data: {}, error })).toBe(error);
  }
  expect(errorInstead({ data: {}, error: null })).toBeNull();
});
