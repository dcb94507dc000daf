import { EnvironmentHost } from '@palestra/environment-kit';
import { afterAll, describe, expect, test } from 'vitest';
import { math } from './math.environment.ts';
import { makeProblem } from './problems.ts';
import { Rational } from './rational.ts';

const host = new EnvironmentHost([math]);
afterAll(() => host.close());

async function submit(seed: number, answer: string) {
  const sid = `${seed}:${answer}`;
  await host.create({ sid, env: null, task: { kind: 'spec', spec: { seed } }, toolsetName: null, secrets: {} });
  return host.call(sid, 'submit', { answer });
}

describe('math', () => {
  test.each(['', 'x', '1/0', '1e3', '0x10', '1/2/3', '١'])('answer %j is wrong, not an error', async (answer) => {
    expect(await submit(0, answer)).toMatchObject({ ok: true, reward: 0, finished: true });
  });

  test('accepts the right answer in every form for every kind of problem', async () => {
    for (let seed = 0; seed < 80; seed += 1) {
      const { answer } = makeProblem(seed);
      expect(await submit(seed, String(answer))).toMatchObject({ reward: 1, finished: true });
      expect(await submit(seed, `${answer.numerator * 3n} / ${answer.denominator * 3n}`)).toMatchObject({ reward: 1 });
      expect(await submit(seed, String(answer.plus(new Rational(1, 1000))))).toMatchObject({ reward: 0 });
    }
  });

  test('known answers', () => {
    expect(Rational.parse('1.25')).toEqual(new Rational(5, 4));
    expect(Rational.parse('-0.5')).toEqual(new Rational(-1, 2));
    expect(Rational.parse('-.5')).toEqual(new Rational(-1, 2));
    expect(new Rational(6, -4).toString()).toBe('-3/2');
  });

  test('has different problems', () => {
    const questions = Array.from({ length: 1000 }, (_, seed) => makeProblem(seed).question);
    expect(new Set(questions).size).toBeGreaterThan(985);
  });
});
