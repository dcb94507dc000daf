import { EnvironmentHost, playTask, type Player } from '@palestra/environment-kit';
import { afterAll, describe, expect, test } from 'vitest';
import { ctf } from './ctf.environment.ts';
import { makeRoom } from './room.ts';

const host = new EnvironmentHost([ctf]);
afterAll(() => host.close());

const playing = (play: Player['play']): Player => ({ name: 'test', description: 'A player of this test.', play });
const player = (name: string) => ctf.players!.find((one) => one.name === name)!;
const cents = (value: number) => Math.round(value * 100);
const splits = ctf.splits.map(({ name }) => name);

async function* everyTask(): AsyncGenerator<{ split: string; index: number; level: number }> {
  for (const split of splits) {
    for (const [index, task] of ((await ctf.tasks!(split)) as { level: number }[]).entries()) yield { split, index, level: task.level };
  }
}

describe('ctf', () => {
  test('refuses a level that does not exist', async () => {
    const spec = { level: 6, seed: 0 };
    const created = host.create({ sid: 'six', env: null, task: { kind: 'spec', spec }, toolsetName: null, secrets: {} });
    await expect(created).rejects.toMatchObject({ code: 'environment_failed' });
  });

  test('requires the password and a reachable machine', async () => {
    const { calls } = await playTask(ctf, {
      task: { level: 5, seed: 0 },
      player: playing(async ({ call }) => {
        const [neighbour] = /^(\w+): port 22/m.exec((await call('scan', {})).text)!.slice(1);
        await call('login', { host: neighbour!, password: 'guess' });
        await call('login', { host: 'elsewhere' });
        await call('cat', { path: '/../../nope' });
        await call('ls', { path: 'nope' });
      }),
    });
    expect(calls.slice(1).map(({ text }) => text)).toEqual([
      'login: permission denied',
      'login: no route to elsewhere',
      'cat: /nope: no such file',
      'ls: /nope: no such directory',
    ]);
  });

  test('ls shows hidden files with all, and files below with recursive', async () => {
    const { machines, start } = makeRoom(1, 3);
    const files = [...machines.get(start)!.files.keys()].toSorted();
    const visible = files.filter((path) => !path.includes('/.'));
    const { calls } = await playTask(ctf, {
      task: { level: 1, seed: 3 },
      player: playing(async ({ call }) => {
        await call('ls', { all: true, recursive: true });
        await call('ls', { recursive: true });
        await call('ls', { path: '/etc' });
      }),
    });
    expect(calls.map(({ text }) => text)).toEqual([files.join('\n'), visible.join('\n'), 'motd']);
    expect(visible.length).toBeLessThan(files.length);
  });

  test('ends after three wrong flags, and after ten turns', async () => {
    const wrong = await playTask(ctf, {
      task: { level: 1, seed: 3 },
      player: playing(async ({ call }) => {
        for (let attempt = 0; attempt < 4; attempt += 1) await call('submit', { flag: 'flag{guess}' });
      }),
    });
    expect(wrong.calls.map(({ refused }) => refused)).toEqual([null, null, null, 'episode_finished']);
    const slow = await playTask(ctf, {
      task: { level: 1, seed: 3 },
      player: playing(async ({ call }) => {
        await call('cat', {});
        for (let turn = 0; turn < 11; turn += 1) await call('cat', { path: '/etc/motd' });
      }),
    });
    expect(slow.calls.map(({ refused }) => refused)).toEqual([
      'input_validation',
      ...Array.from({ length: 10 }, () => null),
      'episode_finished',
    ]);
    expect(slow.calls[7]!.text).toMatch(/^Welcome to \w+\. Authorised users only\.\n+Turns left: 3\.$/);
    expect(slow.calls[10]!.text).toMatch(/That was your last turn\.$/);
    expect(slow.total).toBe(0);
    expect(slow.prompt).toContain('You have 10 turns');
  });

  test('a task may have tools that answer with an error, or never', async () => {
    const spec = { level: 1, seed: 0, faults: { decode: 'error', scan: 'hang' } };
    await host.create({ sid: 'faulty', env: null, task: { kind: 'spec', spec }, toolsetName: null, secrets: {} });
    const { text } = await host.call('faulty', 'decode', { text: 'x', method: 'hex' });
    expect(JSON.parse(text).output).toMatchObject({
      blocks: [{ text: expect.stringMatching(/^Error: decode: /) }],
      reward: null,
      finished: false,
      metadata: { error: 'library_missing' },
    });
    const hanging = Promise.resolve(host.call('faulty', 'scan', {})).catch((error: Error) => error);
    await host.delete('faulty');
    expect(await hanging).toBeInstanceOf(Error);
  });

  test('gives each reward on the way once, and 1 in all with the flag', async () => {
    for (const level of [1, 2, 3, 4, 5]) {
      const repeated = playing(async ({ call, ...session }) => {
        // Everything that was rewarded is repeated once.
        await player('expert').play({
          ...session,
          async call(tool, input) {
            const first = await call(tool, input);
            if (tool === 'ls' || first.finished || !first.reward) return first;
            const again = await call(tool, input);
            expect(again.reward ?? 0, `${level} ${tool}`).toBe(0);
            return first;
          },
        });
      });
      expect((await playTask(ctf, { task: { level, seed: 11 }, player: repeated })).total).toBeLessThanOrEqual(1);
      const partial = await playTask(ctf, { task: { level, seed: 11 }, player: player('expert') });
      expect(cents(partial.total)).toBe(100);
      const onTheWay = partial.rewards.slice(0, -1).filter((reward) => reward > 0);
      expect(onTheWay.map(cents)).toEqual({ 1: [5], 2: [5, 5, 10], 3: [5, 5, 10], 4: [5, 10, 15, 5], 5: [5, 5, 10, 15, 5, 10] }[level]);
    }
  });

  test('every task is solved by solve and by the expert, within ten turns', async () => {
    for await (const { split, index, level } of everyTask()) {
      const name = `${split} ${index}`;
      expect(cents((await playTask(ctf, { split, index })).total), name).toBe(100);
      const { calls, total } = await playTask(ctf, { split, index, player: player('expert') });
      expect(cents(total), name).toBe(100);
      expect(calls.length, name).toBe({ 1: 3, 2: 6, 3: 5, 4: 7, 5: 9 }[level]);
    }
  });

  test('the naive player solves some levels, the random one none', async () => {
    const means: Record<string, number[]> = {};
    for (const name of ['random', 'naive']) {
      for (let index = 0; index < 50; index += 1) {
        const { total } = await playTask(ctf, { split: 'test', index, player: player(name) });
        const sums = (means[name] ??= [0, 0, 0, 0, 0]);
        sums[index % 5]! += total / 10;
      }
    }
    expect(means['random']!.every((mean) => mean < 0.2)).toBe(true);
    expect(means['naive']![0]).toBeCloseTo(1);
    expect(means['naive']![1]).toBeLessThan(0.5);
    expect(means['naive']![2]).toBeLessThan(0.5);
  });

  test('has levels in equal shares', async () => {
    const counts: Record<string, number> = {};
    for await (const { split, level } of everyTask()) counts[`${split} ${level}`] = (counts[`${split} ${level}`] ?? 0) + 1;
    for (const level of [1, 2, 3, 4, 5])
      expect([counts[`train ${level}`], counts[`validation ${level}`], counts[`test ${level}`]]).toEqual([60, 10, 10]);
  });
});
