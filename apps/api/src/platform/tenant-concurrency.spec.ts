import { expect, test } from 'vitest';
import { TenantConcurrency, Semaphore } from './tenant-concurrency.ts';

test('an organisation takes its share of the slots, and a slot is given back once', () => {
  const slots = new TenantConcurrency('uploads', { owner: 2, all: 3 });
  const first = slots.acquire('a');
  slots.acquire('a');
  expect(() => slots.acquire('a')).toThrow('2 uploads of this organisation');
  slots.acquire('b');
  expect(() => slots.acquire('c')).toThrow('3 uploads are in progress');
  first();
  first();
  slots.acquire('c');
  expect(() => slots.acquire('d')).toThrow('3 uploads are in progress');
});

test('turns are taken in order, also after a failure', async () => {
  const turns = new Semaphore(1);
  const order: number[] = [];
  const work = (at: number) => turns.use(async () => void order.push(at));
  const failing = turns.use(() => Promise.reject(new Error('no')));
  const others = [work(1), work(2)];
  await expect(failing).rejects.toThrow('no');
  await Promise.all(others);
  expect(order).toEqual([1, 2]);
});
