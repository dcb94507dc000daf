import { describe, expect, test } from 'vitest';
import { completions, parseQuery, printQuery, QUERY_KEYS } from './index.ts';

/** Completes at the bar. */
function at(marked: string) {
  const cursor = marked.indexOf('|');
  const text = marked.replace('|', '');
  const { from, to, candidates } = completions(text, cursor);
  return { replaced: text.slice(from, to), candidates: candidates.map((candidate) => candidate.text) };
}

test('every entry of the catalogue has an example that parses to its key', () => {
  expect(QUERY_KEYS.length).toBeGreaterThan(45);
  for (const { key, example, values } of QUERY_KEYS) {
    const query = parseQuery(example);
    expect(query.clauses[0]).toMatchObject({ kind: 'field', key });
    expect(printQuery(query)).toBe(example.startsWith('in:') ? 'in:assistant "I give up"' : example);
    for (const value of values ?? []) expect(() => parseQuery(`${key}:${value} text`)).not.toThrow();
  }
});

describe('completions', () => {
  test('offer keys, those that start with what is typed first', () => {
    expect(at('|').candidates).toHaveLength(QUERY_KEYS.length);
    expect(at('reward:1 ste|').candidates).toEqual(['step:', 'policy_step:', 'prov.step:']);
    expect(at('reward:1 ste|').replaced).toBe('ste');
    expect(at('-too|')).toEqual({ replaced: 'too', candidates: ['tool:', 'tool.error:'] });
    expect(at('(a OR grou|').candidates[0]).toBe('group:');
    expect(at('Traceback|').candidates).toEqual([]);
  });

  test('offer the values of enumerations, after commas too', () => {
    expect(at('stop:max|')).toEqual({ replaced: 'max', candidates: ['max_turns', 'max_tokens'] });
    expect(at('stop:max_turns,ma|')).toEqual({ replaced: 'ma', candidates: ['max_turns', 'max_tokens'] });
    expect(at('prov.step:|').candidates).toEqual(['unknown', 'inferred', 'parsed', 'reported']);
    expect(at('group.complete:|').candidates).toEqual(['true', 'false', 'null']);
    expect(at('reward:|').candidates).toEqual(['<0.2', 'null']);
    expect(at('reward:1,|').candidates).toEqual(['null']);
    expect(at('nokey:|').candidates).toEqual([]);
  });

  test('keep out of quotes and survive any cursor', () => {
    expect(at('"a ste|').candidates).toEqual([]);
    expect(at('"a \\" ste|').candidates).toEqual([]);
    expect(at('"a" ste|').candidates).toContain('step:');
    expect(completions('step', -5)).toMatchObject({ from: 0, to: 0 });
    expect(completions('ste', 99)).toMatchObject({ from: 0, to: 3 });
  });
});
