import { EnvironmentHost } from '@palestra/environment-kit';
import type { TaskSpec } from '@palestra/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SeededRandom } from '../random.ts';
import { solveWhodunit } from './solver.fixture.ts';
import { whodunit } from './whodunit.environment.ts';
import { full } from '../../../../tests/support/full.ts';

interface Output {
  output: { blocks: { text: string }[]; reward: number; finished: boolean; metadata: { solved: boolean } };
}

let host: EnvironmentHost;
beforeAll(() => {
  host = new EnvironmentHost([whodunit]);
});
afterAll(() => host.close());

/** Opens a game and gives what a model sees of it: the prompt, and tools that return text. */
async function open(sid: string, task: TaskSpec) {
  await host.create({ sid, env: null, task: { kind: 'spec', spec: task }, toolsetName: null, secrets: {} });
  let total = 0;
  const play = async (tool: string, input: Record<string, string>): Promise<string> => {
    const { output } = JSON.parse((await host.call(sid, tool, input)).text) as Output;
    total += output.reward;
    return output.blocks[0]!.text;
  };
  const [prompt] = await host.prompt(sid);
  return { prompt: (prompt as { text: string }).text, play, total: () => Math.round(total * 100) / 100 };
}

describe('whodunit', () => {
  test('answers invalid input with help', async () => {
    const { play, total } = await open('nonsense', { seed: 1 });
    expect(await play('interview', { suspect: 'Nobody' })).toMatch(/There is no suspect "Nobody"\. Try: /);
    expect(await play('search', { room: '' })).toMatch(/There is no room ""/);
    expect(total()).toBe(0);
  });

  test('refuses a task without a seed', async () => {
    const create = host.create({ sid: 'bad', env: null, task: { kind: 'spec', spec: { seed: 'x' } }, toolsetName: null, secrets: {} });
    await expect(create).rejects.toMatchObject({ code: 'environment_failed' });
  });

  test('can be solved from the answers alone, for every seed', async () => {
    for (let seed = 0; seed < (full ? 300 : 100); seed += 1) {
      const game = await open(`solver-${seed}`, { seed });
      await solveWhodunit(game);
      expect(game.total(), `seed ${seed}`).toBe(1);
      await host.delete(`solver-${seed}`);
    }
  });

  test('gives little reward for guesses', async () => {
    const random = new SeededRandom('guess');
    let sum = 0;
    for (let seed = 0; seed < 300; seed += 1) {
      const game = await open(`guess-${seed}`, { seed });
      const list = (name: string) =>
        new RegExp(`^${name}: (.*)$`, 'm')
          .exec(game.prompt)![1]!
          .split(/[,;] |\w+: /)
          .filter(Boolean);
      await game.play('accuse', {
        suspect: random.pick(list('Suspects')),
        room: random.pick(list('Rooms')),
        weapon: random.pick(list('Weapons in the house')),
      });
      sum += game.total();
    }
    expect(sum / 300).toBeLessThan(0.25);
  });

  test('limits alibi checks and steps', async () => {
    const { prompt, play } = await open('night', { seed: 7 });
    const [suspect] = /^Suspects: (.*)$/m.exec(prompt)![1]!.split(', ');
    const [room] = /^Rooms: (.*)$/m.exec(prompt)![1]!.split(', ');
    for (let check = 0; check < 2; check += 1) expect(await play('check_alibi', { suspect: suspect! })).toMatch(/whereabouts at nine is/);
    expect(await play('check_alibi', { suspect: suspect! })).toMatch(/allows no more/);
    for (let step = 0; step < 30; step += 1) await play('search', { room: room! });
    expect(await play('search', { room: room! })).toMatch(/The sun rises/);
  });

  test('has disjoint splits, and the same mystery for the same seed', async () => {
    const seeds = new Map<string, Set<number>>();
    for (const { name } of host.splits(null)) {
      seeds.set(name, new Set((await host.tasks(null, name)).map((task) => (task as { seed: number }).seed)));
    }
    expect([...seeds].map(([name, { size }]) => [name, size])).toEqual([
      ['train', 2000],
      ['validation', 200],
      ['test', 200],
    ]);
    expect(new Set([...seeds.values()].flatMap((set) => [...set])).size).toBe(2400);
    const [first, second] = [await open('same-1', { seed: 5 }), await open('same-2', { seed: 5 })];
    expect(first.prompt).toBe(second.prompt);
  });
});
