import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, drive, groupsOf, hostFragile, ordered, rolloutsOf, start } from './contract.ts';

/** TRL 1.16.0 without torch: the environment class as GRPOTrainer uses it, and TRL's own OpenRewardSpec. trl.torch.spec.ts has the trainers. */
const program = { python: 'trl', program: 'trl_environment.py' };
let palestra: SharedPalestra;
let fragile: Awaited<ReturnType<typeof hostFragile>>;
beforeAll(async () => {
  palestra = await sharedPalestra();
  fragile = await hostFragile(palestra, 'fragile-trl');
});
afterAll(() => fragile?.close());

interface Played {
  rewards: (number | null)[];
  pool: number;
  column: string;
  schemas: { name: string; description: string; parameters: { properties: object; required?: string[] } }[];
}

describe('environment_factory', () => {
  test('plays with pooled environments, whose tools are methods that transformers describes', async () => {
    const run = 'trl-play';
    const played = await drive<Played>(palestra, { ...program, args: ['play', 'palestra/whodunit'], run });
    expect(played.pool).toBe(4);
    expect(played.column).toBe('whodunit');
    expect(played.schemas.map(({ name }) => name)).toContain('accuse');
    const accuse = played.schemas.find(({ name }) => name === 'accuse')!;
    expect(accuse.parameters.required).toEqual(['suspect', 'weapon', 'room']);
    expect(accuse.parameters.properties).toMatchObject({ suspect: { type: 'string', description: expect.stringContaining(' ') } });
    const [first, , other] = played.rewards;
    expect(played.rewards).toEqual([first, first, other, other, other, other, first, first]);
    const rows = await rolloutsOf(palestra, run, 8);
    const groups = groupsOf(rows).map((group) => ({
      ...Object.fromEntries(
        (['step', 'task_index', 'policy_step', 'turns', 'stop', 'phase'] as const).map((name) => [name, group[0]![name]]),
      ),
      rewards: group.map(({ reward }) => reward),
      samples: ordered(group.map(({ sample }) => sample)),
    }));
    const known = { turns: 2, stop: 'finished', phase: 'train', samples: [0, 1] };
    expect(groups).toHaveLength(4);
    expect(groups).toEqual(
      expect.arrayContaining(
        [0, 1].flatMap((step) => [
          { ...known, step, policy_step: step, task_index: 0, rewards: [first, first] },
          { ...known, step, policy_step: step, task_index: 1, rewards: [other, other] },
        ]),
      ),
    );
    await assertNoSession(palestra);
  });

  test('images are content blocks of prompt and results', async () => {
    const told = await drive(palestra, { ...program, args: ['images', '-'], run: 'trl-images' });
    // The second prompt has the text already.
    expect(told).toEqual([[[3, 2], 'Look'], [[3, 2]], [[3, 2], 'There']]);
  });

  test('a server that disappears gives None to TRL, and its failure to the run', async () => {
    const run = 'trl-fail';
    const played = await drive<Played>(palestra, { ...program, args: ['fail', fragile.environment], run });
    expect(played.rewards).toEqual([1.25, 1.25, null, null, null, null]);
    const rows = await rolloutsOf(palestra, run, 6);
    expect(ordered(rows.map((row) => [row.step, row.task_index, row.reward, row.failure_class]))).toEqual([
      [0, 0, 1.25, null],
      [0, 0, 1.25, null],
      [0, 1, null, 'infrastructure'],
      [0, 1, null, 'infrastructure'],
      [1, 0, null, 'infrastructure'],
      [1, 0, null, 'infrastructure'],
    ]);
    await assertNoSession(palestra);
  });

  test.each([
    ['never ends its episodes', 'leave', 0],
    ['raises in the middle of an episode', 'raise', 1],
  ])('a trainer that %s leaves no session', async (name, mode, code) => {
    const finished = await start(palestra, { ...program, args: [mode, 'palestra/whodunit'], run: `trl-${name}` });
    expect(finished.code, finished.output).toBe(code);
    const rows = await rolloutsOf(palestra, `trl-${name}`, 2);
    expect(ordered(rows.map(({ stop, reward }) => [stop, reward]))).toEqual([
      ['aborted', null],
      ['finished', expect.any(Number)],
    ]);
    await assertNoSession(palestra);
  });
});

test("TRL's OpenRewardSpec works unmodified", async () => {
  const played = await drive<{ rewards: number[]; columns: string[]; finished: boolean }>(palestra, {
    ...program,
    args: ['openreward', 'palestra/whodunit'],
    run: 'trl-openreward',
    env: { OPENREWARD_SESSION_URL: palestra.url },
  });
  expect(played.columns).toEqual(['id', 'level', 'prompt', 'seed', 'task_index']);
  expect(played.rewards).toEqual([expect.any(Number), expect.any(Number)]);
  expect(played.finished).toBe(true);
  await assertNoSession(palestra);
});
