import { expect, test } from 'vitest';
import { toError } from './http.ts';

test('an error of the server keeps the id that its log has, others have none', async () => {
  const failed = { detail: 'Internal Server Error', message: 'Internal Server Error', code: 'internal_error', id: 'b1c2' };
  expect(await toError(Response.json(failed, { status: 500 }))).toMatchObject({ status: 500, code: 'internal_error', id: 'b1c2' });
  const refused = { detail: 'There is no run of that name.', message: 'There is no run of that name.', code: 'run_not_found' };
  expect(await toError(Response.json(refused, { status: 404 }))).toMatchObject({
    code: 'run_not_found',
    message: refused.detail,
    id: null,
  });
  expect(await toError(new Response('<html>', { status: 502 }))).toMatchObject({ status: 502, code: 'http_502', id: null });
});
