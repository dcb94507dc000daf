import { describe, expect, test } from 'vitest';
import { GLANCE_LIMIT, type SessionGlance, type WatchedCall } from './session-events.sql.ts';
import { endedSince, EventReader, formatPosition, parsePosition } from './session-events.watcher.ts';

const call = (seq: number, running = false, settled = true): WatchedCall => ({ taskId: `t${seq}`, seq, running, settled });
const glance = (calls: WatchedCall[], change: Partial<SessionGlance> = {}): SessionGlance => ({
  version: 1,
  ended: false,
  quiet: false,
  calls,
  ...change,
});
/** What a reader is told by a glance. */
function read(reader: EventReader, seen: SessionGlance): string[] {
  const news = reader.news(seen);
  reader.told(seen);
  return news;
}

describe('a reader of a session’s events', () => {
  test('is told of each call when it begins and when it ends, and of nothing twice', () => {
    const reader = new EventReader({ version: 0, floor: 0 });
    expect(read(reader, glance([call(1, true)]))).toEqual(['t1']);
    expect(read(reader, glance([call(1, true)]))).toEqual([]);
    expect(read(reader, glance([call(1), call(2)]))).toEqual(['t1', 't2']);
    expect(read(reader, glance([]))).toEqual([]);
    expect(reader.running).toEqual([]);
    expect(reader.floor).toBe(2);
  });

  test('is told once of a call that ended after the glance and before its row was read', () => {
    const reader = new EventReader({ version: 0, floor: 0 });
    const seen = endedSince(glance([call(1, true), call(2, true)]), new Set(['t1']), 2);
    expect(read(reader, seen)).toEqual(['t1', 't2']);
    expect([reader.running, reader.position.version]).toEqual([['t2'], 2]);
    expect(read(reader, glance([call(1), call(2, true)], { version: 2 }))).toEqual([]);
    expect(read(reader, glance([call(2)], { version: 3 }))).toEqual(['t2']);
  });

  test('does not miss a call that is stored after a later one', () => {
    const reader = new EventReader({ version: 0, floor: 0 });
    expect(read(reader, glance([call(1), call(3, false, false)]))).toEqual(['t1', 't3']);
    expect(reader.floor).toBe(1);
    expect(read(reader, glance([call(2, false, false), call(3, false, false)]))).toEqual(['t2']);
    expect(read(reader, glance([call(2), call(3)]))).toEqual([]);
    expect(reader.floor).toBe(3);
  });

  test('goes on past a call that runs for hours, and comes back to it', () => {
    const reader = new EventReader({ version: 0, floor: 0 });
    read(reader, glance([call(1, true), call(2), call(3)]));
    expect([reader.floor, reader.running]).toEqual([3, ['t1']]);
    expect(reader.position).toEqual({ version: 1, floor: 0 });
    expect(read(reader, glance([call(1), call(4)]))).toEqual(['t1', 't4']);
    expect(reader.position).toEqual({ version: 1, floor: 4 });
  });

  test('another one begins where it stopped', () => {
    const reader = new EventReader({ version: 0, floor: 0 });
    read(reader, glance([call(1), call(2, true), call(3)], { version: 5 }));
    const id = formatPosition(reader.position);
    expect(id).toBe('5.1');
    const next = new EventReader(parsePosition(id)!);
    expect(next.isNew(glance([], { version: 5 }))).toBe(false);
    expect(next.isNew(glance([], { version: 6 }))).toBe(true);
    expect(read(next, glance([call(2), call(3)]))).toEqual(['t2', 't3']);
  });

  test('is over when the session has ended and no result is on its way, or none came for long', () => {
    const reader = new EventReader({ version: 0, floor: 0 });
    const running = glance([call(1, true)], { ended: true });
    reader.told(running);
    expect(reader.isOver(running)).toBe(false);
    expect(reader.isOver({ ...running, quiet: true })).toBe(true);
    const done = glance([call(1)], { ended: true });
    reader.told(done);
    expect(reader.isOver(done)).toBe(true);
    expect(reader.isOver({ ...done, ended: false })).toBe(false);
    expect(
      reader.isOver(
        glance(
          Array.from({ length: GLANCE_LIMIT }, (_, seq) => call(seq)),
          { ended: true },
        ),
      ),
    ).toBe(false);
  });

  test.each(['', 'x', '1', '1.', '1.2.3', '-1.2', '1.99999999999999999999'])('an id that is none of ours is no position: %j', (id) => {
    expect(parsePosition(id)).toBeNull();
  });
});
