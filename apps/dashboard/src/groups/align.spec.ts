import type { RolloutDiff } from '@palestra/protocol';
import { expect, test } from 'vitest';
import { type Action, boardOf, glyphsOf } from './align.ts';

const action = (tool: string): Action => ({ index: 0, kind: 'call', tool, error: false, reward: null });
/** `=x` both, `-x` only the centre, `+x` only the lane. */
const diff = (...steps: string[]): RolloutDiff =>
  ({
    rows: steps.map((step) => {
      const tool = action(step.slice(1));
      return { a: step[0] === '+' ? null : tool, b: step[0] === '-' ? null : tool, same: step[0] === '=' };
    }),
  }) as RolloutDiff;
const shown = (board: ReturnType<typeof boardOf>) =>
  board.rows.map(({ cells }) => cells.map((cell) => (cell ? (cell.same ? cell.action.tool! : `!${cell.action.tool}`) : '')).join('|'));

test('lanes are aligned with the centre, and different actions stand in the rows of the actions they replace', () => {
  const board = boardOf([diff('=a', '=b', '=c'), diff('=a', '-b', '+x', '=c'), diff('=a', '-b', '-c')]);
  expect(shown(board)).toEqual(['a|a|a', 'b|!x|', 'c|c|']);
  expect(board.firstDivergence).toBe(1);
  expect(board.partsAt).toEqual([null, 1, 1]);
});

test('extra actions of a lane get separate rows, before the next shared action and at the end', () => {
  const board = boardOf([diff('=a', '=b'), diff('=a', '+x', '+y', '=b', '+z'), diff('+w', '=a', '=b')]);
  expect(shown(board)).toEqual(['||!w', 'a|a|a', '|!x|', '|!y|', 'b|b|b', '|!z|']);
  expect(board.partsAt).toEqual([null, 2, 0]);
});

test('equal lanes do not diverge, and lanes that are loading are empty', () => {
  expect(boardOf([diff('=a'), undefined])).toEqual({
    rows: [{ cells: [{ action: action('a'), same: true }, null] }],
    firstDivergence: null,
    partsAt: [null, null],
  });
  expect(boardOf([undefined]).rows).toEqual([]);
});

test('each tool gets a unique letter', () => {
  expect(Object.fromEntries(glyphsOf(['search', 'submit', 'accuse', 's']))).toEqual({ accuse: 'A', s: 'S', search: 'E', submit: 'U' });
});
