import { describe, expect, it } from 'vitest';
import { parseTolerant } from '../json/tolerant-json.ts';
import { BatchShapeError, readBatch } from './event-reader.ts';

const id = '2f0c2a52-6a0c-4a53-9d0c-5d3ef2a7f001';
const message = {
  eventType: 'message',
  eventId: id,
  rolloutEventId: id,
  timestamp: 1,
  index: 0,
  type: 'tool_result',
  content: '',
  isFinished: true,
  metadata: {},
};
const read = (...events: unknown[]) => readBatch(parseTolerant(JSON.stringify({ events })));

describe('readBatch', () => {
  it.each([null, [], { events: {} }, 'x'])('refuses the body %j as a whole', (body) => {
    expect(() => readBatch({ value: body, dirty: false })).toThrow(BatchShapeError);
  });

  it.each([
    [{ ...message, eventId: 'x' }, /eventId/],
    [{ ...message, index: -1 }, /index/],
    [{ ...message, type: 'song' }, /type/],
    [{ ...message, reward: 'high' }, /reward/],
    [{ ...message, eventType: 'other' }, /eventType/],
    [{ eventType: 'rollout', eventId: id, timestamp: 1, runName: '' }, /runName/],
    [{ eventType: 'rollout_update', eventId: id, timestamp: 1, rollout_info: 3 }, /rollout_info/],
    [7, /object/],
  ])('rejects %j alone and keeps its neighbours', (bad, reason) => {
    const batch = read(message, bad, { ...message, index: 1 });
    expect(batch.events).toHaveLength(2);
    expect(batch.rejected).toMatchObject([{ position: 1, detail: expect.stringMatching(reason) }]);
  });

  it('reads the old spelling, keeps unknown keys and leaves an absent reward null', () => {
    const { isFinished: _, ...old } = message;
    const [event] = read({ ...old, is_finished: true, future: 1 }).events;
    expect(event).toMatchObject({ kind: 'message', isFinished: true, reward: null, extra: { future: 1 }, content: '' });
  });
});
