import { EnvironmentHost } from '@palestra/environment-kit';
import { afterAll, describe, expect, test } from 'vitest';
import { ctf } from './ctf.environment.ts';

const host = new EnvironmentHost([ctf]);
afterAll(() => host.close());

interface Output {
  output: { blocks: { text: string }[]; reward: number; finished: boolean };
}
type Play = (tool: string, input?: Record<string, unknown>) => Promise<string>;

async function open(level: number, seed: number) {
  const sid = `${level}-${seed}-${Math.random()}`;
  await host.create({ sid, env: null, task: { kind: 'spec', spec: { level, seed } }, toolsetName: null, secrets: {} });
  let total = 0;
  const play: Play = async (tool, input = {}) => {
    const { output } = JSON.parse((await host.call(sid, tool, input)).text) as Output;
    total += output.reward;
    return output.blocks[0]!.text;
  };
  return { sid, play, total: () => Math.round(total * 100) / 100 };
}

async function readAll(play: Play, folder = '/'): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const name of (await play('ls', { path: folder, all: true })).split('\n')) {
    if (name.endsWith('/')) for (const [path, text] of await readAll(play, folder + name)) files.set(path, text);
    else files.set(folder + name, await play('cat', { path: folder + name }));
  }
  return files;
}

/** Plays by the texts only: reads everything, follows notes and reminders, and goes on to the next machine. */
async function solve(play: Play): Promise<void> {
  const seen = new Set<string>();
  for (;;) {
    const files = await readAll(play);
    const secrets: { what: string; secret: string }[] = [];
    for (const text of files.values()) {
      const encoded = /^(.+) is in (\S+)\. To read it, undo (.+)\.$/.exec(text);
      const encrypted = /^(.+) is in (\S+), vigenere\. The key is the name of (\w+)'s cat\.$/.exec(text);
      if (encoded) {
        let secret = files.get(encoded[2]!)!;
        for (const method of encoded[3]!.split(', then ')) secret = await play('decode', { text: secret, method });
        secrets.push({ what: encoded[1]!, secret });
      } else if (encrypted) {
        const key = /my cat (\w+)/.exec(files.get(`/home/${encrypted[3]}/mail.txt`)!)![1];
        const secret = await play('decode', { text: files.get(encrypted[2]!), method: 'vigenere', key });
        secrets.push({ what: encrypted[1]!, secret });
      }
      const plain = /flag\{[^}]+\}/.exec(text);
      if (plain && text.startsWith('Nobody looks here')) secrets.push({ what: 'The flag', secret: plain[0] });
    }
    const flag = secrets.find(({ what }) => what === 'The flag');
    if (flag) {
      await play('submit', { flag: flag.secret });
      return;
    }
    const [{ what, secret }] = secrets as [{ what: string; secret: string }];
    const next = /^The password of (\w+)$/.exec(what)![1]!;
    if (seen.has(next)) throw new Error(`going in circles at ${next}`);
    seen.add(next);
    await play('login', { host: next, password: secret });
  }
}

describe('ctf', () => {
  test('refuses a level that does not exist', async () => {
    await expect(open(6, 0)).rejects.toMatchObject({ code: 'environment_failed' });
  });

  test('requires the password and a reachable machine', async () => {
    const { play } = await open(5, 0);
    const [neighbour] = /^(\w+): port 22/m.exec(await play('scan'))!.slice(1);
    expect(await play('login', { host: neighbour, password: 'guess' })).toBe('login: permission denied');
    expect(await play('login', { host: 'elsewhere' })).toBe('login: no route to elsewhere');
    expect(await play('cat', { path: '/../../nope' })).toBe('cat: /nope: no such file');
    expect(await play('ls', { path: 'nope' })).toBe('ls: /nope: no such directory');
  });

  test('ends after three wrong flags', async () => {
    const { sid, play, total } = await open(1, 3);
    for (let attempt = 0; attempt < 3; attempt += 1) await play('submit', { flag: 'flag{guess}' });
    expect(await host.call(sid, 'ls', {})).toMatchObject({ ok: false, reason: 'episode_finished' });
    expect(total()).toBe(0);
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

  test.each([1, 2, 3, 4, 5])('level %i can be solved with the tools', async (level) => {
    for (let seed = 0; seed < 40; seed += 1) {
      const { play, total } = await open(level, seed);
      await solve(play);
      expect(total(), `seed ${seed}`).toBe(1);
    }
  });

  test('has enough tasks of every level', async () => {
    const tasks = (await host.tasks(null, 'train')) as { level: number }[];
    expect(tasks.length).toBeGreaterThanOrEqual(200);
    expect(new Set(tasks.map(({ level }) => level)).size).toBe(5);
  });
});
