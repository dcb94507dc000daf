import { EnvironmentHost, playTask, type Player } from '@palestra/environment-kit';
import { describe, expect, test } from 'vitest';
import { possibleMurderers } from './deduction.ts';
import { TURNS } from './investigation.ts';
import { LEVELS, makeMystery } from './mystery.ts';
import { readCase } from './reader.ts';
import { whodunit } from './whodunit.environment.ts';

const playing = (play: Player['play']): Player => ({ name: 'test', description: 'A player of this test.', play });
const player = (name: string) => whodunit.players!.find((one) => one.name === name)!;
const cents = (value: number) => Math.round(value * 100);

interface Task {
  level: number;
  seed: number;
}
const everyTask = async () => {
  const lists = await Promise.all(
    whodunit.splits.map(async ({ name }) => ((await whodunit.tasks!(name)) as Task[]).map((task, index) => ({ split: name, index, task }))),
  );
  return lists.flat();
};

describe('whodunit', () => {
  test('answers invalid input with help, which takes a turn', async () => {
    const { calls, total } = await playTask(whodunit, {
      task: { seed: 1 },
      player: playing(async ({ call }) => {
        await call('interview', { suspect: 'Nobody' });
        await call('search', { room: '' });
        for (let turn = 0; turn < TURNS; turn += 1) await call('search', { room: 'nowhere' });
      }),
    });
    expect(calls[0]!.text).toMatch(/^There is no suspect "Nobody"\. Try: /);
    expect(calls[1]!.text).toMatch(/^There is no room ""/);
    expect(calls[9]).toMatchObject({ text: expect.stringContaining('nobody was accused'), finished: true });
    expect(calls.slice(10).map(({ refused }) => refused)).toEqual(['episode_finished', 'episode_finished']);
    expect(total).toBe(0);
  });

  test.each([{ seed: 'x' }, { seed: 1, level: 5 }])('refuses the task %j', async (spec) => {
    const host = new EnvironmentHost([whodunit]);
    const create = host.create({ sid: 'bad', env: null, task: { kind: 'spec', spec }, toolsetName: null, secrets: {} });
    await expect(create).rejects.toMatchObject({ code: 'environment_failed' });
    await host.close();
  });

  test('states the turns, and warns at the end', async () => {
    const { prompt, calls } = await playTask(whodunit, {
      task: { seed: 7 },
      player: playing(async ({ call, prompt: text }) => {
        const { suspects, rooms } = readCase(text);
        for (let check = 0; check < 3; check += 1) await call('check_alibi', { suspect: suspects[0]! });
        for (let turn = 3; turn < TURNS; turn += 1) await call('search', { room: rooms[0]! });
      }),
    });
    expect(prompt).toContain('You have 10 turns');
    for (const check of [0, 1]) expect(calls[check]!.text).toMatch(/whereabouts at nine is/);
    expect(calls[2]!.text).toMatch(/allows no more/);
    expect(calls[5]!.text).not.toContain('left');
    expect(calls[6]!.text).toMatch(/\nTurns left: 3\.$/);
    expect(calls[8]!.text).toMatch(/\nOne turn left: accuse now\.$/);
    expect(calls[9]).toMatchObject({ finished: true, reward: 0 });
  });

  test('every task has one culprit, whom the expert finds from the texts alone within ten turns', { timeout: 240_000 }, async () => {
    for (const { split, index, task } of await everyTask()) {
      const mystery = makeMystery(task.seed, task.level);
      expect(possibleMurderers({ ...mystery, murderRoom: mystery.room })).toEqual([mystery.murderer]);
      // Each room once, each suspect once, and the accusation.
      expect(mystery.rooms.length + mystery.suspects.length + 1).toBeLessThanOrEqual(TURNS);
      const name = `${split} ${index}`;
      const { calls, total } = await playTask(whodunit, { split, index, player: player('expert') });
      expect(cents(total), name).toBe(100);
      expect(calls.length, name).toBeLessThanOrEqual(TURNS);
      expect(cents((await playTask(whodunit, { split, index })).total), name).toBe(100);
    }
  });

  test('the naive player is in the middle, and guesses give little', async () => {
    const mean = async (name: string) => {
      let sum = 0;
      for (let index = 0; index < 200; index += 1) sum += (await playTask(whodunit, { split: 'test', index, player: player(name) })).total;
      return sum / 200;
    };
    expect(await mean('random')).toBeLessThan(0.3);
    const naive = await mean('naive');
    expect(naive).toBeGreaterThan(0.3);
    expect(naive).toBeLessThan(0.7);
  });

  test('has disjoint splits with all levels, and the same mystery for the same seed', async () => {
    const tasks = await everyTask();
    const count = (split: string, level: number) => tasks.filter((one) => one.split === split && one.task.level === level).length;
    const levels = Array.from({ length: LEVELS }, (_, index) => index + 1);
    expect(levels.map((level) => [count('train', level), count('validation', level), count('test', level)])).toEqual(
      levels.map(() => [500, 50, 50]),
    );
    expect(new Set(tasks.map(({ task }) => task.seed)).size).toBe(2400);
    const prompts = await Promise.all(
      [{ seed: 5 }, { seed: 5, level: 2 }].map(
        async (task) => (await playTask(whodunit, { task, player: playing(async () => {}) })).prompt,
      ),
    );
    expect(prompts[0]).toBe(prompts[1]);
  });
});
