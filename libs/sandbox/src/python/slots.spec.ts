import { expect, test } from 'vitest';
import { Slots } from './slots.ts';

const never = new AbortController().signal;

test('removes an aborted waiter from the queue', async () => {
  const slots = new Slots(1);
  await expect(slots.take(AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
  const leave = await slots.take(never);
  const impatient = new AbortController();
  const order: string[] = [];
  const gone = slots.take(impatient.signal).catch((error: Error) => order.push(error.message));
  const second = slots.take(never).then((leaveSecond) => (order.push('second'), leaveSecond));
  const third = slots.take(never).then(() => order.push('third'));
  impatient.abort(new Error('gave up'));
  await gone;
  leave();
  leave();
  const leaveSecond = await second;
  expect(order).toEqual(['gave up', 'second']);
  leaveSecond();
  await third;
  expect(order).toEqual(['gave up', 'second', 'third']);
});

test('owners take turns, however many calls of one wait', async () => {
  const slots = new Slots(1);
  const leave = await slots.take(never);
  const [many, one] = [{}, {}];
  const order: string[] = [];
  const turn = async (name: string, owner: object) => {
    const done = await slots.take(never, owner);
    order.push(name);
    done();
  };
  const turns = [...['a', 'b', 'c'].map((name) => turn(name, many)), turn('one', one), turn('d', many)];
  leave();
  await Promise.all(turns);
  expect(order).toEqual(['a', 'one', 'b', 'c', 'd']);
});
