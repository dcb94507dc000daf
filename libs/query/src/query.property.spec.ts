import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type Clause,
  compileQuery,
  completions,
  parseQuery,
  printQuery,
  type Query,
  QUERY_KEYS,
  QueryError,
  type QueryKeyEntry,
} from './index.ts';
import { defaultSchema } from './schema.fixture.ts';
import { cpuTime } from '../../../tests/support/cpu-time.ts';
import { full } from '../../../tests/support/full.ts';

/** Of a tree without positions. */
type Bare = Record<string, unknown>;

function bare(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(bare);
  if (node === null || typeof node !== 'object') return node;
  return Object.fromEntries(
    Object.entries(node)
      .filter(([key]) => key !== 'position' && key !== 'length')
      .map(([key, value]) => [key, bare(value)]),
  );
}

const anyText = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.constantFrom('OR', 'null', '-x', 'a:b', '/u/', ''),
);
const text = anyText.filter((value) => !value.includes('\0'));
const textValue = text.map((value) => ({ kind: 'text', text: value }));
const regexValue = fc.record({
  kind: fc.constant('regex'),
  pattern: fc.stringMatching(/^[a-z.*+(|)[\],"]([a-z .*+(|)[\],"]|\\[a-z/"\\]){0,10}$/),
  ignoreCase: fc.boolean(),
});
const duration = fc.record({
  kind: fc.constant('duration'),
  value: fc.oneof(
    fc.nat(36_000),
    fc.nat(999).map((value) => value / 8),
  ),
  unit: fc.constantFrom('ms', 's', 'm', 'h'),
});
const date = fc
  .record({
    at: fc.date({ min: new Date('1970-01-01'), max: new Date('2999-12-31'), noInvalidDate: true }),
    length: fc.constantFrom(10, 16, 19, 24),
  })
  .map(({ at, length }) => ({ kind: 'date', iso: at.toISOString().slice(0, length) }));

const finite = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => ({ kind: 'number', value: value + 0 }));
const whole = fc.maxSafeInteger().map((value) => ({ kind: 'number', value: value + 0 }));

function orderedValue(operand: fc.Arbitrary<Bare>): fc.Arbitrary<Bare> {
  const operator = fc.constantFrom('=', '<', '<=', '>', '>=');
  return fc.oneof(
    fc.record({ kind: fc.constant('compare'), operator, operand }),
    fc.record({ kind: fc.constant('range'), low: fc.constant(null), high: fc.option(operand) }),
    fc.record({ kind: fc.constant('range'), low: operand, high: fc.constant(null) }),
    // Equal ends are in order, whatever the kind.
    operand.map((end) => ({ kind: 'range', low: end, high: end })),
  );
}

function valueOf(entry: QueryKeyEntry): fc.Arbitrary<Bare> {
  const known: Record<QueryKeyEntry['kind'], () => fc.Arbitrary<Bare>> = {
    text: () => fc.oneof(textValue, regexValue),
    integer: () => orderedValue(whole),
    number: () => orderedValue(finite),
    duration: () =>
      orderedValue(fc.oneof(finite, duration)).filter(
        (value) => value['kind'] === 'compare' || value['low'] === value['high'] || value['low'] === null || value['high'] === null,
      ),
    time: () => orderedValue(fc.oneof(duration, date)),
    enum: () => fc.constantFrom(...(entry.values ?? [])).map((value) => ({ kind: 'text', text: value })),
    boolean: () => fc.constantFrom('true', 'false').map((value) => ({ kind: 'text', text: value })),
    uuid: () => fc.uuid().map((value) => ({ kind: 'text', text: value })),
    failure: () =>
      fc
        .oneof(fc.constantFrom('policy', 'environment', 'infrastructure'), fc.stringMatching(/^[0-9a-f]{16}$/))
        .map((value) => ({ kind: 'text', text: value })),
    bigint: () => fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n).map((value) => ({ kind: 'text', text: String(value) })),
  };
  return entry.nullable ? fc.oneof(known[entry.kind](), fc.constant({ kind: 'null' })) : known[entry.kind]();
}

const negated = fc.boolean();
const field = fc.constantFrom(...QUERY_KEYS.filter(({ key }) => key !== 'in')).chain((entry) =>
  fc.record({
    kind: fc.constant('field'),
    negated,
    key: fc.constant(entry.key),
    values: fc.array(valueOf(entry), { minLength: 1, maxLength: 3 }),
  }),
);
const textClause = fc.record({ kind: fc.constant('text'), negated, value: fc.oneof(textValue, regexValue) });
const { clause } = fc.letrec<{ clause: Bare; group: Bare }>((tie) => ({
  clause: fc.oneof({ maxDepth: 3 }, field, textClause, tie('group')),
  group: fc.record({
    kind: fc.constant('group'),
    negated,
    alternatives: fc.array(fc.record({ clauses: fc.array(tie('clause'), { minLength: 1, maxLength: 3 }) }), { minLength: 1, maxLength: 3 }),
  }),
}));
const query = fc.record({ clauses: fc.array(clause, { maxLength: 5 }) }) as unknown as fc.Arbitrary<Query>;

const countClauses = (clauses: Clause[]): number =>
  clauses.reduce(
    (sum, one) => sum + 1 + (one.kind === 'group' ? one.alternatives.reduce((all, each) => all + countClauses(each.clauses), 0) : 0),
    0,
  );

test('what is printed is read back as the same tree, and printed the same', () => {
  const runs = full ? 2_000 : 500;
  let seen = 0;
  fc.assert(
    fc.property(query, (tree) => {
      const printed = printQuery(tree);
      fc.pre(printed.length <= 2_000 && countClauses(tree.clauses) <= 100);
      seen++;
      const read = parseQuery(printed);
      expect(bare(read)).toEqual(bare(tree));
      expect(printQuery(read)).toBe(printed);
    }),
    { numRuns: runs },
  );
  expect(seen).toBeGreaterThan(0.75 * runs);
});

const fragments = [
  '(',
  ')',
  '"',
  '\\',
  '/',
  ',',
  ':',
  '-',
  '..',
  '<',
  '=',
  ' ',
  'OR',
  'a',
  'step:',
  'tool:',
  'reward:',
  'in:',
  'received:',
];
const hostile = ['2h', '1', '2026-11-01', 'null', 'i', '(a', '[b', '\\1', '(?=x)', '$1', "';--", '\u{1F600}', '\uD800', '\n'];
const pieces = fc.constantFrom(...fragments, ...hostile);

test('no text makes the parser or the compiler throw anything but QueryError, and no text reaches the SQL', () => {
  const runs = full ? 5_000 : 1_500;
  let parsed = 0;
  const noise = fc.oneof(
    fc.array(pieces, { maxLength: 40 }).map((all) => all.join('')),
    fc.string({ unit: 'binary', maxLength: 60 }),
  );
  fc.assert(
    fc.property(noise, fc.nat(60), (input, cursor) => {
      completions(input, cursor);
      try {
        const tree = parseQuery(input);
        const { where, values } = compileQuery(tree, defaultSchema, { now: 0 });
        parsed++;
        expect(where).toMatch(/^[\w\s.()$:,<>=&@'[\]*/+-]*$/);
        expect(where).not.toContain('--');
        expect(new Set(where.match(/\$\d+/g) ?? []).size).toBe(values.length);
      } catch (error) {
        expect(error).toBeInstanceOf(QueryError);
        const { position, length } = error as QueryError;
        expect(position + length).toBeLessThanOrEqual(input.length + 1);
      }
    }),
    { numRuns: runs },
  );
  expect(parsed).toBeGreaterThan(0.06 * runs);
});

test.each(['/a ', '/ ', '/\\/ ', '(', '((a OR ', '"a" ', '-', 'tool:/a ', '\\', 'a,', 'tool:a,', '/a/'])(
  'reads a long row of %j in no time',
  (piece) => {
    const text = piece.repeat(Math.floor(2_000 / piece.length));
    const started = cpuTime();
    for (let round = 0; round < 20; round++) {
      try {
        parseQuery(text);
      } catch (error) {
        expect(error).toBeInstanceOf(QueryError);
      }
    }
    // Milliseconds for 40 000 characters; quadratic work on 2 000 would be 80 million steps.
    expect(cpuTime() - started).toBeLessThan(400);
  },
);
