import { PassThrough } from 'node:stream';
import { afterEach, expect, test, vi } from 'vitest';
import { GitHookController } from './git-hook.controller.ts';

afterEach(() => vi.useRealTimers());

test('a push that arrives byte by byte is refused after a minute', async () => {
  vi.useFakeTimers();
  const links = { find: async () => null };
  const controller = new GitHookController(links as never, {} as never, {} as never, {} as never);
  const body = new PassThrough();
  const request = { body, headers: { 'content-length': '100000' }, raw: body };
  const refused = controller.receive('any', request as never).catch((error: unknown) => error);
  for (let seconds = 0; seconds < 60; seconds += 10) {
    expect(body.destroyed, `${seconds} s`).toBe(false);
    body.write('x');
    await vi.advanceTimersByTimeAsync(10_000);
  }
  expect(body.destroyed).toBe(true);
  expect(await refused).toMatchObject({ code: 'invalid_request', status: 408 });
});
