import { describe, expect, test } from 'vitest';
import { compileQuery, type CompileOptions, needsMessages, parseQuery, QueryError, type QuerySchema } from './index.ts';
import { defaultSchema } from './schema.fixture.ts';
import { periodOf } from './time-window.ts';

const now = Date.parse('2026-11-20T12:00:00Z');
const compile = (text: string, schema: QuerySchema = defaultSchema, more: Partial<CompileOptions> = {}) =>
  compileQuery(parseQuery(text), schema, { now, ...more });

describe('compileQuery', () => {
  test('writes placeholders only, starting from the given number', () => {
    const { where, values, text, postFilter } = compile('step:120..140 -stop:finished env:a,b "I give up"', defaultSchema, {
      firstParameter: 3,
    });
    expect(where).toBe(
      '((r.step >= $3::bigint AND r.step <= $4::bigint)) AND (r.stop = ANY($5::smallint[])) IS NOT TRUE AND ((SELECT e.name FROM rollout_envs e WHERE e.id = r.env_id) = ANY($6::text[])) AND ' +
        "(EXISTS (SELECT 1 FROM rollout_messages mm WHERE mm.rollout_seq = r.seq AND mm.tsv @@ phraseto_tsquery('simple', $7)))",
    );
    expect(values).toEqual([120, 140, [0], ['a', 'b'], 'I give up']);
    expect(text).toEqual([{ kind: 'phrase', text: 'I give up', ignoreCase: true, types: null }]);
    expect(postFilter).toBeNull();
  });

  test('keeps one statement text for any number of values', () => {
    expect(compile('env:a').where).toBe(compile('env:a,b,c').where);
    expect(compile('stop:timeout,aborted').where).toBe(compile('stop:finished').where);
  });

  test('takes all names from the schema', () => {
    const schema: QuerySchema = {
      ...defaultSchema,
      fields: { ...defaultSchema.fields, reward: 'x.score' },
      textExists: ({ text, types }, bind) => `sealed_or_open(${bind(text)}, ${bind(types)})`,
    };
    expect(compile('reward:>1 in:user hello', schema)).toMatchObject({
      where: '(x.score > $1::float8) AND (sealed_or_open($2, $3))',
      values: [1, 'hello', ['user_message']],
    });
  });

  test('leaves regexes to the post filter, and the condition keeps every candidate', () => {
    const undecided = compile('reward:1 -tool:/^ba/ (name:/budget/i OR step:3) in:tool -x');
    expect(undecided.where).toContain("mm.type = 'tool_call' AND FALSE)) IS NOT TRUE");
    expect(undecided.values).toContain('%budget%');
    expect(undecided.postFilter!.regexes.map(({ field, flags }) => [field, flags])).toEqual([
      ['tool', ''],
      ['name', 'i'],
    ]);
    expect(undecided.postFilter!.query.clauses.map((clause) => clause.kind)).toEqual(['field', 'group', 'field']);
    // Negated phrases are nothing to highlight.
    expect(undecided.text).toEqual([]);
  });

  test('reports a regex that RE2 does not support, with its position', () => {
    expect(() => compile('reward:1 tool:/(a)\\1/')).toThrow(expect.objectContaining({ position: 14, length: 7, token: '/(a)\\1/' }));
    expect(() => compile('reward:1 tool:/(a)\\1/')).toThrow(QueryError);
  });
});

test('needsMessages is true for queries that need more than the row of a rollout', () => {
  for (const text of ['reward:1', 'has:error tag:x', '(is:best OR model:/x/)']) expect(needsMessages(parseQuery(text))).toBe(false);
  for (const text of ['x', 'tool:bash', 'reward:1 (step:1 OR -tool.error:x)', '/x/']) expect(needsMessages(parseQuery(text))).toBe(true);
});

test('a date is a whole day, minute, second or millisecond, in UTC by default', () => {
  const at = (iso: string) => {
    const period = periodOf(iso);
    return period && [new Date(period.from).toISOString(), period.to - period.from];
  };
  expect(at('2026-11-20')).toEqual(['2026-11-20T00:00:00.000Z', 86_400_000]);
  expect(at('2028-02-29')).toEqual(['2028-02-29T00:00:00.000Z', 86_400_000]);
  expect(at('2026-11-20T10:30')).toEqual(['2026-11-20T10:30:00.000Z', 60_000]);
  expect(at('2026-11-20T10:30:05+02:00')).toEqual(['2026-11-20T08:30:05.000Z', 1_000]);
  expect(at('2026-11-20T10:30:05.25Z')).toEqual(['2026-11-20T10:30:05.250Z', 1]);
  for (const wrong of ['2026-02-29', '2026-13-01', '2026-11-20T25:00', '2026-11-20 10:30', '20261120', '2026-11-20T10'])
    expect(at(wrong)).toBeUndefined();
});
