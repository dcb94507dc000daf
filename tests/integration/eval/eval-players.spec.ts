import { afterAll, beforeAll, expect, test } from 'vitest';
import { sharedPalestra, type SharedPalestra } from '../../support/palestra.ts';
import { get, palestra, rolloutsOf } from './eval.world.ts';

/**
 * `palestra eval` of the scripted players gives the scores that the page of their environment states. The first sample of a task has the seed
 * of the report, so that the same tasks give the same figures; fewer tasks agree within the interval of two samples.
 */
let server: SharedPalestra;

beforeAll(async () => {
  server = await sharedPalestra();
});
afterAll(() => server?.stop());

const PLAYERS = ['random', 'naive', 'expert', 'solve'];
const PLAYED: [environment: string, tasks: number][] = [
  ['ctf', 50],
  ['whodunit', 12],
  ['math', 40],
  ['coding', 2],
];

test.each(PLAYED.flatMap(([name, tasks]) => PLAYERS.map((player) => [name, player, tasks] as const)))(
  'palestra/%s by the player %s',
  async (name, player, tasks) => {
    const run = `${name}-${player}`;
    const ended = await palestra(server, 'eval', `palestra/${name}`, '--player', player, '-n', String(tasks), '--run', run, '-o', 'json');
    expect(ended.code, ended.stderr).toBe(0);
    const { reward_mean: mean, success, scored, failures } = JSON.parse(ended.stdout);
    expect({ scored, failures }).toEqual({ scored: tasks, failures: { environment: 0, infrastructure: 0 } });
    const { report } = await get(server, `/v1/environments/palestra/${name}`);
    const stated = report.players.find((one: { name: string }) => one.name === player);
    // The interval of the difference of two means. Student's interval of equal rewards has no width, Wilson's of the solved share has.
    const half = ({ low, high }: { low: number; high: number }) => (high - low) / 2;
    const bound = Math.hypot(half(stated), Math.max(half(mean), half(success)));
    if (tasks === stated.tasks) expect(mean.value).toBeCloseTo(stated.mean, 5);
    expect(Math.abs(mean.value - stated.mean), `${mean.value} and ${stated.mean}`).toBeLessThanOrEqual(bound);
    const stored = await rolloutsOf(server, run);
    expect(stored.map(({ reward }) => reward!).reduce((sum, reward) => sum + reward, 0) / tasks).toBeCloseTo(mean.value, 9);
  },
);
