import { describe, expect, it } from 'vitest';
import type { RolloutEvent } from '@palestra/protocol';
import { all, OPTIONS, sent, textBytes } from './import.fixture.ts';
import { importPalestra } from './palestra.ts';

const ROLLOUT = '11111111-1111-4111-8111-111111111111';
const MESSAGE = '22222222-2222-4222-8222-222222222222';
const view = {
  id: ROLLOUT,
  run: { id: 'r', name: 'first', org: 'o' },
  rolloutName: 'n',
  environment: 'acme/sums',
  step: 3,
  task_index: 5,
  reward: 1,
  finished: true,
  created_at: '2026-05-01T10:00:00.000Z',
  metadata: { seed: 1 },
  messages: [
    {
      eventId: MESSAGE,
      index: 4,
      timestamp: 1_770_000_000_123,
      type: 'assistant_message',
      content: 'hi',
      reward: 1,
      isFinished: true,
      metadata: {},
    },
  ],
};
const start = { eventType: 'rollout', eventId: ROLLOUT, timestamp: 1, runName: 'first' };
const message = {
  eventType: 'message',
  eventId: MESSAGE,
  rolloutEventId: ROLLOUT,
  timestamp: 1,
  index: 0,
  type: 'user_message',
  content: 'x',
  isFinished: false,
  metadata: {},
};
const read = async (record: object, runName?: string) =>
  sent(await all(importPalestra(textBytes(JSON.stringify(record)), { at: OPTIONS.at, ...(runName ? { runName } : {}) })));
const eventsOf = async (record: object, runName?: string) =>
  (await read(record, runName)).flatMap(({ events = [] }) => events) as (RolloutEvent & Record<string, unknown>)[];

describe('our own JSON lines', () => {
  it('go back to where they were, with every id', async () => {
    expect(await eventsOf(view)).toMatchObject([
      { eventId: ROLLOUT, runName: 'first', step: 3, rollout_info: { task_index: 5 }, metadata: { seed: 1, reward_total: 1 } },
      { eventId: MESSAGE, rolloutEventId: ROLLOUT, index: 4, timestamp: 1_770_000_000_123, reward: 1, isFinished: true },
    ]);
    expect(await eventsOf(start)).toEqual([start]);
    expect(await eventsOf({ events: [start, message] })).toEqual([start, message]);
  });

  it('get other ids in another run, the same ones each time', async () => {
    const events = await eventsOf({ events: [start, message] }, 'second');
    expect(events).toEqual(await eventsOf({ events: [start, message] }, 'second'));
    expect(events[0]).toMatchObject({ runName: 'second' });
    expect(events[0]!.eventId).not.toBe(ROLLOUT);
    expect(events[1]).toMatchObject({ rolloutEventId: events[0]!.eventId });
    const [moved, said] = await eventsOf(view, 'second');
    expect([moved!.eventId, said!.eventId]).not.toContain(ROLLOUT);
    expect(said).toMatchObject({ rolloutEventId: moved!.eventId, index: 4 });
  });

  it.each([
    [{ messages: [] }, 'The rollout names no run; give one.'],
    [{ x: 1 }, 'The line is neither a rollout with its messages nor an upload event.'],
    [{ ...view, messages: [{ type: 'shout' }] }, 'message 0 has no type of ours.'],
    [{ eventType: 'message', eventId: 'x' }, 'eventId must be a UUID.'],
  ])('tell what is wrong with %j', async (record, problem) => {
    expect(await read(record)).toEqual([{ where: 'line 1', problem }]);
  });
});
