import { parseQuery, type Query } from '@palestra/query';
import { describe, expect, test } from 'vitest';
import { accept, complete, printValue } from './complete.ts';
import { piecesOf } from './highlight.ts';
import { boundsOf, choicesOf, choose, effectiveQuery, withTextClause, setBounds, withoutKey } from './query-edit.ts';

const of = (text: string): Query => parseQuery(text);

test('the searched text becomes a clause of the list', () => {
  expect(withTextClause('step:3', 'the lamp', 'text')).toBe('step:3 "the lamp"');
  expect(withTextClause('', 'lamp', 'text')).toBe('lamp');
  const written = String.raw`a/b\/c\d`;
  expect(withTextClause('step:3', written, 'regex')).toBe(String.raw`step:3 /a\/b\/c\d/`);
  expect(parseQuery(withTextClause('', written, 'regex')).clauses).toMatchObject([{ kind: 'text', value: { kind: 'regex' } }]);
});

describe('facets edit the text of a query', () => {
  test('a value is included with others of its key, excluded, and removed', () => {
    expect(choose(of(''), 'stop', 'finished', 'in')).toBe('stop:finished');
    expect(choose(of('reward:0 stop:finished "a b"'), 'stop', 'max_turns', 'in')).toBe('reward:0 stop:finished,max_turns "a b"');
    expect(choose(of('stop:finished,max_turns'), 'stop', 'finished', null)).toBe('stop:max_turns');
    expect(choose(of('stop:finished x'), 'stop', 'finished', null)).toBe('x');
    expect(choose(of('stop:finished'), 'stop', 'finished', 'out')).toBe('-stop:finished');
    expect(choose(of('-stop:finished'), 'stop', 'timeout', 'out')).toBe('-stop:finished,timeout');
    expect(choose(of(''), 'tag', 'to review', 'in')).toBe('tag:"to review"');
    expect(choose(of(''), 'env', 'null', 'in')).toBe('env:null');
  });

  test('a regex or a range of the key keeps a separate clause, and parentheses do not change', () => {
    expect(choose(of('tool:/^ba/'), 'tool', 'search', 'in')).toBe('tool:/^ba/ tool:search');
    expect(choose(of('(stop:finished OR reward:1)'), 'stop', 'finished', null)).toBe('(stop:finished OR reward:1)');
    expect([...choicesOf(of('(stop:finished OR x) stop:timeout -stop:aborted tool:/a/'), 'stop')]).toEqual([
      ['timeout', 'in'],
      ['aborted', 'out'],
    ]);
  });

  test('counts of a facet ignore only the included values of its key', () => {
    expect(withoutKey(of('stop:finished reward:0 -stop:timeout'), 'stop')).toBe('reward:0 -stop:timeout');
  });

  test('bounds are parsed and printed, and a bin is half open', () => {
    expect(boundsOf(of('step:10..20 reward:>=0.1 reward:<0.2'), 'step')).toEqual({ from: 10, to: 20 });
    expect(boundsOf(of('step:10..20 reward:>=0.1 reward:<0.2'), 'reward')).toEqual({ from: 0.1, below: 0.2 });
    expect(setBounds(of('step:10..20 x'), 'step', { from: 3 })).toBe('x step:3..');
    expect(setBounds(of('x'), 'step', { from: 3, to: 3 })).toBe('x step:3');
    expect(setBounds(of('x reward:1'), 'reward', { from: 0.1, below: 0.2 })).toBe('x reward:>=0.1 reward:<0.2');
    expect(setBounds(of('x step:3'), 'step', {})).toBe('x');
    for (const text of ['step:3..', 'step:3', 'reward:>=0.1 reward:<0.2']) expect(() => of(text)).not.toThrow();
  });

  test('the filter of the run comes before the query', () => {
    expect(effectiveQuery({ steps: '3..9', env: 'a/b', phase: 'eval' }, 'reward:1')).toBe('step:3..9 env:a/b phase:eval reward:1');
    expect(effectiveQuery({}, '')).toBe('');
  });
});

describe('completion', () => {
  const known = {
    tool: [
      { value: 'search', count: 7 },
      { value: 'read notes', count: 1 },
      { value: 'research', count: 2 },
    ],
  };
  const words = (text: string) => complete(text, text.length, known).candidates.map((candidate) => candidate.text);

  test('offers the values of the run in query syntax', () => {
    expect(words('tool:')).toEqual(['search', '"read notes"', 'research']);
    expect(words('reward:1 -tool:SEA')).toEqual(['search', 'research']);
    expect(words('tool:search,rea')).toEqual(['"read notes"']);
    expect(words('tool.err')).toEqual(['tool.error:']);
    expect(words('stop:max')).toEqual(['max_turns', 'max_tokens']);
    expect(printValue('env', 'palestra/whodunit')).toBe('palestra/whodunit');
  });

  test('replaces the typed text', () => {
    const found = complete('x tool:sea', 10, known);
    expect(accept('x tool:sea', found, found.candidates[0]!)).toEqual({ text: 'x tool:search ', cursor: 14 });
    const key = complete('too x', 3, known);
    expect(accept('too x', key, key.candidates[0]!)).toEqual({ text: 'tool: x', cursor: 5 });
  });
});

test('the pieces of any text add up to the text', () => {
  const text = '-stop:finished,timeout reward:<=0.2 step:1..2 ("a b" OR /x y/i) "open \\" nokey: /usr/bin -';
  const pieces = piecesOf(text);
  expect(pieces.map((piece) => piece.text).join('')).toBe(text);
  const kinds = pieces.filter(({ kind }) => kind !== 'space').map(({ text: word, kind }) => `${kind} ${word}`);
  expect(kinds.slice(0, 8)).toEqual([
    'sign -',
    'key stop:',
    'value finished',
    'operator ,',
    'value timeout',
    'key reward:',
    'operator <=',
    'value 0.2',
  ]);
  expect(kinds).toContain('operator ..');
  expect(kinds).toContain('regex /x y/i');
  expect(kinds).toContain('join OR');
  expect(kinds.at(-1)).toContain('string "open');
});
