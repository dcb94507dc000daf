import { describe, expect, test } from 'vitest';
import { ReplyDoubts } from './reply-doubts.ts';

describe('a reply is doubted', () => {
  test('when it equals one of the last to another message', () => {
    const doubts = new ReplyDoubts();
    for (let n = 0; n < 64; n += 1) expect(doubts.raisedBy(`m${n}`, `r${n}`)).toBe(false);
    expect(doubts.raisedBy('m64', 'r64')).toBe(false);
    // The first is forgotten by now.
    expect(doubts.raisedBy('m65', 'r0')).toBe(false);
    expect(doubts.raisedBy('m66', 'r2')).toBe(true);
  });

  test('not while the same message is answered the same, but once when that ends', () => {
    const doubts = new ReplyDoubts();
    for (let n = 0; n < 5; n += 1) expect(doubts.raisedBy('m', 'r')).toBe(false);
    expect(doubts.raisedBy('m', 'other')).toBe(true);
    doubts.settled();
    expect(doubts.raisedBy('n', 'third')).toBe(false);
    expect(doubts.raisedBy('n', 'r')).toBe(true);
  });

  test('by the ends of a long one', () => {
    const doubts = new ReplyDoubts();
    const long = 'x'.repeat(100_000);
    expect(doubts.raisedBy('a', `${long}1`)).toBe(false);
    expect(doubts.raisedBy('b', `${long}2`)).toBe(false);
    expect(doubts.raisedBy('c', `${long}1`)).toBe(true);
  });
});
