import type { PlayedSession, Player, ToolInput } from '@palestra/environment-kit';
import { METHODS } from './ciphers.ts';
import type { Room } from './room.ts';

const pick = <T>(random: () => number, items: readonly T[]): T => items[Math.floor(random() * items.length)]!;

/** The calls that capture the flag of a room: they read every clue and log in to every machine. */
export function solve({ flag, machines }: Room): ToolInput[] {
  const calls: ToolInput[] = [];
  for (const { name, password, clues } of machines.values()) {
    if (password !== null) calls.push({ tool: 'login', input: { host: name, password } });
    for (const path of clues) calls.push({ tool: 'cat', input: { path } });
  }
  return [...calls, { tool: 'submit', input: { flag } }];
}

export const players: Player[] = [
  {
    name: 'random',
    description: 'Calls random tools with paths and texts that it has seen, and submits whatever looks like a flag.',
    async play({ call, random }) {
      const folders = ['/', '/home', '/etc', '/var', '/opt'];
      const texts = ['hello'];
      for (;;) {
        const flag = texts.find((text) => /^flag\{.*\}$/.test(text));
        const { text, finished } = await pick(random, [
          () => call('ls', { path: pick(random, folders), all: random() < 0.5 }),
          () => call('ls', { path: pick(random, folders), all: random() < 0.5 }),
          () => call('cat', { path: pick(random, folders) }),
          () => call('decode', { text: pick(random, texts), method: pick(random, METHODS), key: 'key' }),
          () => call('scan', {}),
          () => call('submit', { flag: flag ?? 'flag{guess}' }),
        ])();
        if (finished) return;
        for (const line of text.split('\n')) {
          if (line.startsWith('/')) folders.push(line);
          else if (/^[\w.]+\/?$/.test(line)) folders.push(`/${line}`, `/home/${line}`);
          texts.push(line);
        }
      }
    },
  },
  {
    name: 'naive',
    description: 'Reads notes and hidden files, undoes only the first encoding that it reads about, and does not know ciphers with keys.',
    play: (session) => follow(session, false),
  },
  {
    name: 'expert',
    description: 'Lists all files, follows every note, undoes all encodings in order and goes on to the next machine.',
    play: (session) => follow(session, true),
  },
];

async function follow({ call }: PlayedSession, skilled: boolean): Promise<void> {
  for (;;) {
    const paths = (await call('ls', { path: '/', all: true, recursive: true })).text.split('\n');
    const note = paths.find((path) => /\/(?:notes|reminder)\.txt$/.test(path));
    const hidden = paths.find((path) => path.endsWith('.dat'));
    const secret = note === undefined ? await readPlainly(call, hidden) : await readByNote(call, note, skilled);
    const next = /^The password of (\w+)/.exec(secret.what)?.[1];
    if (next === undefined) {
      // A naive player submits what it has, readable or not.
      await call('submit', { flag: secret.text });
      return;
    }
    const { text } = await call('login', { host: next, password: secret.text });
    if (!text.startsWith('Logged in')) return;
  }
}

interface Secret {
  /** For example `The password of draco`. */
  what: string;
  text: string;
}

async function readPlainly(call: PlayedSession['call'], path: string | undefined): Promise<Secret> {
  const { text } = await call('cat', { path: path ?? '/etc/motd' });
  return { what: 'The flag', text: /flag\{[^}]+\}/.exec(text)?.[0] ?? text };
}

async function readByNote(call: PlayedSession['call'], path: string, skilled: boolean): Promise<Secret> {
  const note = (await call('cat', { path })).text;
  const [, what = '', inline] = /^(.+?)(?:: (\S+))?(?:\n| is in)/.exec(note) ?? [];
  const owner = /the name of (\w+)'s cat/.exec(note)?.[1];
  if (owner !== undefined) {
    const mail = skilled ? (await call('cat', { path: `/home/${owner}/mail.txt` })).text : '';
    const key = /my cat (\w+)/.exec(mail)?.[1] ?? 'cat';
    return { what, text: firstLine(await call('decode', { text: inline ?? '', method: 'vigenere', key })) };
  }
  let text = inline ?? (await call('cat', { path: /is in (\S+)\. /.exec(note)?.[1] ?? '' })).text;
  const methods = /undo (.+)\.$/m.exec(note)?.[1]?.split(', then ') ?? [];
  for (const method of skilled ? methods : methods.slice(0, 1))
    text = firstLine(await call('decode', { text: firstLine({ text }), method }));
  return { what, text };
}

/** Without the remark on the turns that are left. */
const firstLine = ({ text }: { text: string }): string => text.split('\n')[0]!;
