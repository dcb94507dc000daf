import { expect, test } from 'vitest';
import { TenantConcurrency, Semaphore } from './tenant-concurrency.ts';

test('an organisation has a limit, and a second release does nothing', () => {
  const slots = new TenantConcurrency('uploads', { owner: 2, all: 3 });
  const first = slots.acquire('a');
  slots.acquire('a');
  expect(() => slots.acquire('a')).toThrow('2 uploads of this organisation');
  slots.acquire('b');
  expect(() => slots.acquire('c')).toThrow('3 uploads are already in progress');
  first();
  first();
  slots.acquire('c');
  expect(() => slots.acquire('d')).toThrow('3 uploads are already in progress');
});

test('a semaphore runs work in order, also after a failure', async () => {
  const semaphore = new Semaphore(1);
  const order: number[] = [];
  const work = (at: number) => semaphore.use(async () => void order.push(at));
  const failing = semaphore.use(() => Promise.reject(new Error('no')));
  const others = [work(1), work(2)];
  await expect(failing).rejects.toThrow('no');
  await Promise.all(others);
  expect(order).toEqual([1, 2]);
});
