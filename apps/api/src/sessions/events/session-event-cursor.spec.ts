import { describe, expect, test } from 'vitest';
import { GLANCE_LIMIT, type SessionGlance, type WatchedCall } from './session-events.sql.ts';
import { endedSince, EventCursor, formatPosition, parsePosition } from './session-event-cursor.ts';

const call = (seq: number, running = false, settled = true): WatchedCall => ({ taskId: `t${seq}`, seq, running, settled });
const glance = (calls: WatchedCall[], change: Partial<SessionGlance> = {}): SessionGlance => ({
  version: 1,
  ended: false,
  quiet: false,
  calls,
  ...change,
});
/** Returns the calls that a cursor reports for a glance. */
function read(cursor: EventCursor, seen: SessionGlance): string[] {
  const news = cursor.changedCalls(seen);
  cursor.advance(seen);
  return news;
}

describe('the cursor of a watcher', () => {
  test('reports each call once when it begins and once when it ends', () => {
    const cursor = new EventCursor({ version: 0, floor: 0 });
    expect(read(cursor, glance([call(1, true)]))).toEqual(['t1']);
    expect(read(cursor, glance([call(1, true)]))).toEqual([]);
    expect(read(cursor, glance([call(1), call(2)]))).toEqual(['t1', 't2']);
    expect(read(cursor, glance([]))).toEqual([]);
    expect(cursor.running).toEqual([]);
    expect(cursor.floor).toBe(2);
  });

  test('reports a call once that ended between the glance and the read of its row', () => {
    const cursor = new EventCursor({ version: 0, floor: 0 });
    const seen = endedSince(glance([call(1, true), call(2, true)]), new Set(['t1']), 2);
    expect(read(cursor, seen)).toEqual(['t1', 't2']);
    expect([cursor.running, cursor.position.version]).toEqual([['t2'], 2]);
    expect(read(cursor, glance([call(1), call(2, true)], { version: 2 }))).toEqual([]);
    expect(read(cursor, glance([call(2)], { version: 3 }))).toEqual(['t2']);
  });

  test('reports a call that appears after a later one', () => {
    const cursor = new EventCursor({ version: 0, floor: 0 });
    expect(read(cursor, glance([call(1), call(3, false, false)]))).toEqual(['t1', 't3']);
    expect(cursor.floor).toBe(1);
    expect(read(cursor, glance([call(2, false, false), call(3, false, false)]))).toEqual(['t2']);
    expect(read(cursor, glance([call(2), call(3)]))).toEqual([]);
    expect(cursor.floor).toBe(3);
  });

  test('moves past a long call and reports its end', () => {
    const cursor = new EventCursor({ version: 0, floor: 0 });
    read(cursor, glance([call(1, true), call(2), call(3)]));
    expect([cursor.floor, cursor.running]).toEqual([3, ['t1']]);
    expect(cursor.position).toEqual({ version: 1, floor: 0 });
    expect(read(cursor, glance([call(1), call(4)]))).toEqual(['t1', 't4']);
    expect(cursor.position).toEqual({ version: 1, floor: 4 });
  });

  test('another one begins where it stopped', () => {
    const cursor = new EventCursor({ version: 0, floor: 0 });
    read(cursor, glance([call(1), call(2, true), call(3)], { version: 5 }));
    const id = formatPosition(cursor.position);
    expect(id).toBe('5.1');
    const next = new EventCursor(parsePosition(id)!);
    expect(next.sessionChanged(glance([], { version: 5 }))).toBe(false);
    expect(next.sessionChanged(glance([], { version: 6 }))).toBe(true);
    expect(read(next, glance([call(2), call(3)]))).toEqual(['t2', 't3']);
  });

  test('is over when the session has ended and no result is on its way, or none came for long', () => {
    const cursor = new EventCursor({ version: 0, floor: 0 });
    const running = glance([call(1, true)], { ended: true });
    cursor.advance(running);
    expect(cursor.isOver(running)).toBe(false);
    expect(cursor.isOver({ ...running, quiet: true })).toBe(true);
    const done = glance([call(1)], { ended: true });
    cursor.advance(done);
    expect(cursor.isOver(done)).toBe(true);
    expect(cursor.isOver({ ...done, ended: false })).toBe(false);
    expect(
      cursor.isOver(
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
