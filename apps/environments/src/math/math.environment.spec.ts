import { playTask, type Player } from '@palestra/environment-kit';
import { describe, expect, test } from 'vitest';
import { families } from './families.ts';
import { math } from './math.environment.ts';
import { makeProblem } from './problems.ts';
import { Rational } from './rational.ts';

const submitting = (answer: string): Player => ({
  name: 'test',
  description: 'Submits one answer.',
  play: async ({ call }) => void (await call('submit', { answer })),
});
const submit = async (seed: number, answer: string) => (await playTask(math, { task: { seed }, player: submitting(answer) })).calls[0]!;
const player = (name: string) => math.players!.find((one) => one.name === name)!;
const splits = math.splits.map(({ name }) => name);
const tasksOf = async (split: string) => (await math.tasks!(split)) as { seed: number; level: number }[];
const answerTo = (name: string, values: Record<string, number | Rational>) =>
  String(
    families
      .find((family) => family.name === name)!
      .answer(
        Object.fromEntries(Object.entries(values).map(([key, value]) => [key, typeof value === 'number' ? new Rational(value) : value])),
      ),
  );

describe('math', () => {
  test.each(['', 'x', '1/0', '1e3', '0x10', '1/2/3', '١'])('answer %j is wrong, not an error', async (answer) => {
    expect(await submit(0, answer)).toMatchObject({ refused: null, reward: 0, finished: true });
  });

  test('accepts the right answer in every form for every kind of problem', async () => {
    for (let seed = 0; seed < 5 * families.length; seed += 1) {
      const { answer } = makeProblem(seed);
      expect(await submit(seed, String(answer))).toMatchObject({ reward: 1, finished: true });
      expect(await submit(seed, `${answer.numerator * 3n} / ${answer.denominator * 3n}`)).toMatchObject({ reward: 1 });
      expect(await submit(seed, String(answer.plus(new Rational(1, 1000))))).toMatchObject({ reward: 0 });
    }
  });

  test('known numbers', () => {
    expect(Rational.parse('1.25')).toEqual(new Rational(5, 4));
    expect(Rational.parse('-0.5')).toEqual(new Rational(-1, 2));
    expect(Rational.parse('-.5')).toEqual(new Rational(-1, 2));
    expect(new Rational(6, -4).toString()).toBe('-3/2');
  });

  // Computed by hand.
  test.each<[string, Record<string, number | Rational>, string]>([
    ['sum', { a: 5, b: -7, c: 1 }, '-1'],
    ['product', { a: 6, b: 7, c: -2 }, '40'],
    ['percent', { p: 15, n: 50 }, '15/2'],
    ['fraction_sum', { a: new Rational(1, 2), b: new Rational(-1, 3) }, '1/6'],
    ['fractions', { a: new Rational(1, 2), b: new Rational(1, 3), c: new Rational(3, 2) }, '1'],
    ['linear_equation', { a: 3, b: 1, c: 1, d: 6 }, '5/2'],
    ['mean', { m: 3, a: 1, b: 2, c: 3, d: 4 }, '5'],
    ['common_multiple', { a: 12, b: 18, c: 20 }, '180'],
    ['count_multiples', { n: 200, a: 4, b: 10 }, '60'],
    ['linear_system', { a: 1, b: 1, c: 3, d: 1, e: -1, f: 1, k: 2 }, '4'],
    ['power_modulo', { b: 3, e: 20, m: 7 }, '2'],
    ['derivative', { a: 1, b: -1, c: 2, t: 2 }, '22'],
    ['two_colours', { r: 3, b: 3 }, '3/5'],
    ['residue_sum', { n: 10, r: 1, m: 4 }, '15'],
    ['cubes_of_roots', { p: -3, q: 2 }, '9'],
    ['area', { a: 0, b: 0, c: 4, d: 0, e: 0, f: 3 }, '6'],
    ['remainders', { a: 2, m: 7, b: 3, n: 9 }, '30'],
    ['committee', { w: 3, m: 2, k: 3, l: 2 }, '6'],
    ['dice', { m: 2, n: 2 }, '7/4'],
    ['test_result', { a: 10, b: 10, s: 40, h: 90, w: 5 }, '2/5'],
    ['walk', { i: 1, n: 2, p: new Rational(1, 3) }, '1/3'],
    ['paths', { a: 2, b: 2, c: 1, d: 1 }, '2'],
    ['tank', { a: 4, b: 4, c: 8, t: 2, u: 1 }, '15/4'],
    ['three_sets', { l: 1, n: 12, a: 3, b: 4, c: 11 }, '6'],
  ])('%s', (name, values, answer) => {
    expect(answerTo(name, values)).toBe(answer);
  });

  test('every task is solved by solve and by the expert, and no question is in two splits', async () => {
    const questions = new Map<string, Set<string>>();
    for (const split of splits) {
      const tasks = await tasksOf(split);
      for (const index of tasks.keys()) {
        const { prompt, total } = await playTask(math, { split, index, player: player('expert') });
        expect(total, `${split} ${index}`).toBe(1);
        expect((await playTask(math, { split, index })).total, `${split} ${index}`).toBe(1);
        questions.set(split, (questions.get(split) ?? new Set()).add(prompt));
      }
      expect(questions.get(split)!.size / tasks.length, split).toBeGreaterThan(0.97);
    }
    const all = [...questions.values()].flatMap((set) => [...set]);
    expect(new Set(all).size).toBe(all.length);
  });

  test('has levels in equal shares, and players between them', async () => {
    for (const split of splits) {
      const levels = (await tasksOf(split)).map(({ level }) => level);
      for (const level of [1, 2, 3, 4, 5]) expect(levels.filter((one) => one === level).length).toBe(levels.length / 5);
    }
    const mean = async (name: string) => {
      let sum = 0;
      for (let index = 0; index < 100; index += 1) sum += (await playTask(math, { split: 'test', index, player: player(name) })).total;
      return sum / 100;
    };
    expect(await mean('random')).toBeLessThan(0.1);
    expect(await mean('naive')).toBeCloseTo(0.4, 1);
  });
});
