import { describe, expect, test } from 'vitest';
import { DuplicateReplies } from './duplicate-replies.ts';

describe('a reply must be verified', () => {
  test('if it equals one of the last replies to another message', () => {
    const doubts = new DuplicateReplies();
    for (let n = 0; n < 64; n += 1) expect(doubts.mayBeDuplicate(`m${n}`, `r${n}`)).toBe(false);
    expect(doubts.mayBeDuplicate('m64', 'r64')).toBe(false);
    // The first is forgotten by now.
    expect(doubts.mayBeDuplicate('m65', 'r0')).toBe(false);
    expect(doubts.mayBeDuplicate('m66', 'r2')).toBe(true);
  });

  test('not while equal messages get equal replies, but once afterwards', () => {
    const doubts = new DuplicateReplies();
    for (let n = 0; n < 5; n += 1) expect(doubts.mayBeDuplicate('m', 'r')).toBe(false);
    expect(doubts.mayBeDuplicate('m', 'other')).toBe(true);
    doubts.verified();
    expect(doubts.mayBeDuplicate('n', 'third')).toBe(false);
    expect(doubts.mayBeDuplicate('n', 'r')).toBe(true);
  });

  test('compared by both ends if it is long', () => {
    const doubts = new DuplicateReplies();
    const long = 'x'.repeat(100_000);
    expect(doubts.mayBeDuplicate('a', `${long}1`)).toBe(false);
    expect(doubts.mayBeDuplicate('b', `${long}2`)).toBe(false);
    expect(doubts.mayBeDuplicate('c', `${long}1`)).toBe(true);
  });
});
