import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { afterEach, expect, test, vi } from 'vitest';
import { comparedRunsQuery } from './compare.ts';
import { summaryQuery } from './run-queries.ts';

afterEach(() => void vi.unstubAllGlobals());

/** Answers once, and then nothing. */
function answerOnce(body: object): void {
  const answers = [Response.json(body)];
  vi.stubGlobal('fetch', () => answers.pop() ?? new Promise(() => {}));
}

test('figures stay while another part of the run loads, and not for another run', async () => {
  answerOnce({ rollouts: 8 });
  const observer = new QueryObserver(new QueryClient(), summaryQuery('a', {}));
  const stop = observer.subscribe(() => {});
  await expect.poll(() => observer.getCurrentResult().data).toMatchObject({ rollouts: 8 });
  observer.setOptions(summaryQuery('a', { phase: 'eval' }));
  expect(observer.getCurrentResult()).toMatchObject({ data: { rollouts: 8 }, isPlaceholderData: true });
  observer.setOptions(summaryQuery('b', { phase: 'eval' }));
  expect(observer.getCurrentResult().data).toBeUndefined();
  stop();
});

test('a comparison stays while another part of it loads, and not for the runs in another order', async () => {
  answerOnce({ pairs: [] });
  const observer = new QueryObserver(new QueryClient(), comparedRunsQuery(['a', 'b'], {}));
  const stop = observer.subscribe(() => {});
  await expect.poll(() => observer.getCurrentResult().data).toEqual({ pairs: [] });
  observer.setOptions(comparedRunsQuery(['a', 'b'], { phase: 'eval' }));
  expect(observer.getCurrentResult().data).toEqual({ pairs: [] });
  observer.setOptions(comparedRunsQuery(['b', 'a'], { phase: 'eval' }));
  expect(observer.getCurrentResult().data).toBeUndefined();
  stop();
});
