import { describe, expect, test } from 'vitest';
import { parseQuery, printQuery, QueryError } from './index.ts';

function errorOf(text: string): QueryError {
  try {
    parseQuery(text);
  } catch (error) {
    if (error instanceof QueryError) return error;
    throw error;
  }
  throw new Error(`parsed: ${text}`);
}

describe('parseQuery', () => {
  test('reads the example of the specification, with positions on every node', () => {
    const text = 'step:120..140 reward:<0.2 tool:bash has:error turns:>8 "Traceback" -stop:finished group.std:0';
    const query = parseQuery(text);
    expect(query.clauses.map((clause) => text.slice(clause.position, clause.position + clause.length))).toEqual(text.split(' '));
    expect(query.clauses[0]).toEqual({
      kind: 'field',
      negated: false,
      key: 'step',
      position: 0,
      length: 13,
      values: [{ kind: 'range', low: { kind: 'number', value: 120 }, high: { kind: 'number', value: 140 }, position: 5, length: 8 }],
    });
    expect(query.clauses[1]).toMatchObject({ values: [{ kind: 'compare', operator: '<', operand: { kind: 'number', value: 0.2 } }] });
    expect(query.clauses[5]).toMatchObject({ kind: 'text', value: { kind: 'text', text: 'Traceback', position: 55, length: 11 } });
    expect(query.clauses[6]).toMatchObject({ negated: true, key: 'stop', position: 67, length: 14 });
    expect(printQuery(query)).toBe('step:120..140 reward:<0.2 tool:bash has:error turns:>8 Traceback -stop:finished group.std:0');
  });

  test.each([
    ['', ''],
    ['   a   b ', 'a b'],
    ['reward:=0.50', 'reward:0.5'],
    ['reward:-0,null', 'reward:0,null'],
    ['reward:..', 'reward:..'],
    ['step:..5 turns:3..', 'step:..5 turns:3..'],
    ['tool:bash,"run it",/^py/i', 'tool:bash,"run it",/^py/i'],
    ['env:"palestra/whodunit"', 'env:palestra/whodunit'],
    ['name:"null" name:null', 'name:"null" name:null'],
    ['stop:MAX_TURNS', 'stop:max_turns'],
    ['group.complete:no', 'group.complete:false'],
    ['group:9223372036854775807', 'group:9223372036854775807'],
    ['(a OR -b c) -(d OR "e f")', '(a OR -b c) -(d OR "e f")'],
    ['"OR" -"-x"', '"OR" -"-x"'],
    ['/a b\\/c/i /usr/bin/python a / b', '/a b\\/c/i "/usr/bin/python" a "/" b'],
    ['"tab\\tline\\nquote\\" back\\\\"', '"tab\\tline\\nquote\\" back\\\\"'],
    ['received:2h,2026-11-01..2026-11-20T10:30Z,>2.5d', 'received:2h,2026-11-01..2026-11-20T10:30Z,>2.5d'],
    ['dur:>2m lat:100..500ms', 'dur:>2m lat:100..500ms'],
    ['in:assistant,tool "I give up"', 'in:assistant,tool "I give up"'],
    ['prov.step:inferred ünïcode 日本', 'prov.step:inferred ünïcode 日本'],
  ])('prints %j as %j', (text, printed) => {
    expect(printQuery(parseQuery(text))).toBe(printed);
    expect(printQuery(parseQuery(printed))).toBe(printed);
  });

  test.each([
    ['stp:3', 0, 3, 'stp', 'step'],
    ['reward:1 polcy_step:3', 9, 10, 'polcy_step', 'policy_step'],
    ['toolerror:x', 0, 9, 'toolerror', 'tool.error'],
    ['stop:max_turn', 5, 8, 'max_turn', 'max_turns'],
    ['is:finish', 3, 6, 'finish', 'finished'],
    ['http://x', 0, 4, 'http', undefined],
    ['a OR b', 2, 2, 'OR', '"OR"'],
  ])('names the token of %j and suggests', (text, position, length, token, suggestion) => {
    expect(errorOf(text)).toMatchObject({ position, length, token, suggestion });
  });

  test.each([
    ['reward:high', /expects a number.*Example: reward:<0\.2/],
    ['reward:"1"', /This is a text/],
    ['reward:/1/', /A regex fits texts only/],
    ['step:1.5', /not whole/],
    ['step:99999999999999999999', /too large/],
    ['reward:1e999', /too large/],
    ['step:9..3', /ends before it starts/],
    ['tool:>3', /cannot be compared/],
    ['calls:null', /expects a whole number/],
    ['stop:null', /expects one of finished, max_turns/],
    ['id:17', /expects an id/],
    ['group:99999999999999999999', /expects a whole number/],
    ['group.complete:perhaps', /expects true or false, or null/],
    ['received:yesterday', /expects an age such as 2h/],
    ['received:2026-02-31', /expects an age/],
    ['received:2026-11-01..2h', /two dates or two ages/],
    ['received:9999999w', /hundred years/],
    ['reward:', /A value is missing/],
    ['tool:a,', /A value is missing/],
    ['(a OR b', /never closed: add \)/],
    ['a)', /closes nothing/],
    ['()', /clause is missing/],
    ['(a OR )', /clause is missing/],
    ['"abc', /quote is never closed/],
    ['"a\\d"', /Unknown escape/],
    ['env:/abc', /regex is never closed/],
    ['- a', /nothing to negate/],
    ['print(x)', /put quotes around/],
    ['tool:"a"b', /a comma or the end/],
    ['in:assistant step:3', /add the text/],
    ['(in:assistant OR "x")', /add the text/],
    ['a\0b', /U\+0000/],
  ])('refuses %j', (text, message) => {
    expect(errorOf(text).message).toMatch(message);
  });

  test('holds its limits', () => {
    expect(errorOf('a'.repeat(2_001)).message).toContain('2000 characters');
    expect(parseQuery(`"${'a'.repeat(1_998)}"`).clauses).toHaveLength(1);
    expect(parseQuery('('.repeat(20) + 'a' + ')'.repeat(20)).clauses).toHaveLength(1);
    expect(errorOf('('.repeat(21) + 'a' + ')'.repeat(21)).message).toContain('20 deep');
    expect(parseQuery('a '.repeat(100)).clauses).toHaveLength(100);
    expect(errorOf('a '.repeat(101)).message).toContain('100 clauses');
    expect(parseQuery(`/${'a'.repeat(200)}/`).clauses).toHaveLength(1);
    expect(errorOf(`/${'a'.repeat(201)}/`).message).toContain('200 characters');
    expect(errorOf(`${'k'.repeat(1_900)}:1`).token).toHaveLength(80);
  });
});
