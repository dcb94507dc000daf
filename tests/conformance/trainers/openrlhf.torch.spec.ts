import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertRun, drive, hostFragile, rolloutsOf } from './contract.ts';

/** examples/openrlhf/agent.py, which is the code of docs/trainers/openrlhf.md, in the real executor of OpenRLHF, with torch. */
describe('the executor of OpenRLHF', () => {
  interface Response {
    reward: number;
    scores: number;
    extra_logs: Record<string, number>;
    turns: number;
    /** Tokens that the loss counts. */
    trained: number;
  }
  interface Played {
    responses: Response[];
    live: number;
    /** Groups that the executor still knows. */
    groups: number;
    /** The last conversation that the model read. */
    text: string;
  }
  const whodunit = 'palestra/whodunit';
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra, 'fragile-openrlhf');
  });
  afterAll(() => fragile?.close());
  const play = <T>(scenario: string, environment: string, run: string) =>
    drive<T>(palestra, { python: 'openrlhf', program: 'play_openrlhf.py', args: [scenario, environment], run });

  test('plays, and records group and sample', async () => {
    const { responses, live, groups, text } = await play<Played>('play', whodunit, 'openrlhf');
    expect(responses.map(({ turns, extra_logs: logs }) => [turns, logs])).toEqual(Array(4).fill([2, { palestra_failed: 0 }]));
    expect(responses.every(({ trained }) => trained > 100)).toBe(true);
    expect({ live, groups }).toEqual({ live: 0, groups: 0 });
    // What the environment says follows the end of the model's message, in the form of the chat template.
    expect(text).toMatch(
      /<\/tool_call><\|im_end\|>\n<\|im_start\|>user\n<tool_response>\n[^]+<\/tool_response><\|im_end\|>\n<\|im_start\|>assistant\n$/,
    );
    const rows = await assertRun(palestra, 'openrlhf', { rewards: responses.map(({ reward }) => reward), turns: 2, groups: 2 });
    expect(rows.map(({ sample }) => sample)).toEqual([0, 1, 0, 1]);
    expect(rows.map(({ stop }) => stop)).toEqual(Array(4).fill('finished'));
  });

  test('gives an episode that failed one trained token and the reward of the others', async () => {
    const { responses, live, groups } = await play<Played>('fragile', fragile.environment, 'openrlhf-fragile');
    expect(responses).toMatchObject([
      { reward: 1.25, extra_logs: { palestra_failed: 0 }, turns: 2 },
      { reward: 1.25, scores: 1.25, extra_logs: { palestra_failed: 1 }, trained: 1 },
    ]);
    expect({ live, groups }).toEqual({ live: 0, groups: 0 });
    const rows = await rolloutsOf(palestra, 'openrlhf-fragile', 2);
    const facts = rows.map((row) => [row.reward, row.failure_class]);
    expect(facts).toEqual([
      [1.25, null],
      [null, 'infrastructure'],
    ]);
  });

  test('closes every session when generation raises, while its process goes on', async () => {
    expect(await play('raises', whodunit, 'openrlhf-raises')).toEqual({ error: 'the engine fails', live: 0, groups: 0 });
  });

  test('ends episodes whose context is full', async () => {
    const { responses, live } = await play<Played>('length', whodunit, 'openrlhf-length');
    expect(responses.map(({ turns }) => turns)).toEqual([1, 1]);
    expect(live).toBe(0);
    const rows = await rolloutsOf(palestra, 'openrlhf-length', 2);
    expect(rows.map(({ stop }) => stop)).toEqual(['context_length', 'context_length']);
  });

  test('reads the flags of the page and of the example', async () => {
    const expected = ['agent.py', 'input', 'label'];
    expect(await play('settings', '', 'unused')).toEqual([expected, expected]);
  });
});
