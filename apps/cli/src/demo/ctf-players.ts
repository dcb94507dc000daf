import type { PolicyAction } from '@palestra/client';
import { call, type Script, scripted } from './script.ts';

/** Scripted policies of different skill for `ctf`. Each decides from the texts that a model would see. */
export const ctfPlayers = {
  /** Follows every note to the flag. Submits the encoded text where the tool `decode` fails. */
  operator: scripted((start) => operator(start, false)),
  /** The same, but decodes by itself where the tool fails. */
  expert: scripted((start) => operator(start, true)),
  explorer: scripted(explorer),
  guesser: scripted(guesser),
  talker: scripted(talker),
};

type Steps<Result> = Generator<PolicyAction, Result, string>;

/** Where a secret is and how to read it, from a note or a reminder. */
interface Clue {
  what: string;
  path: string;
  /** In the order in which they are undone; `null`: vigenere with the name of this person's cat. */
  methods: string[];
  friend: string | null;
}

function* operator({ sample }: Parameters<Script>[0], alone: boolean): ReturnType<Script> {
  for (let machine = 0; machine < 3; machine += 1) {
    const clue = yield* findClue();
    if (clue === null) {
      const flag = yield* findPlainFlag();
      if (flag === null) return 'I have read every file. There is no flag here.';
      yield call('submit', { flag }, { message: `No note says how, so it must lie here in plain text: \`${flag}\`` });
      return 'That was the only flag that I could find.';
    }
    const secret = yield* readSecret(clue, alone);
    if (clue.what === 'The flag') {
      const message = `The secret is read:\n\n\`\`\`json\n${JSON.stringify({ file: clue.path, undo: clue.methods, flag: secret }, null, 2)}\n\`\`\``;
      for (let attempt = 0; attempt < 3; attempt += 1) yield call('submit', { flag: secret }, attempt === 0 ? { message } : {});
      return 'I have no attempts left.';
    }
    const host = clue.what.replace('The password of ', '');
    if (sample === 0) yield call('scan', {}, { message: 'First I look which machines I can reach.' });
    const answer = yield call('login', { host, password: secret }, { reasoning: `The note names the password of ${host}: \`${secret}\`.` });
    if (!answer.startsWith('Logged in')) return `I cannot log in to ${host}: ${answer}`;
  }
  return 'There is no way on from here.';
}

/** Reads the notes in the home directories. */
function* findClue(): Steps<Clue | null> {
  const homes = (yield call('ls', { path: '/home', all: true }, { reasoning: 'People leave notes where they live.' })).split('\n');
  for (const home of homes.filter((name) => name.endsWith('/') && name !== 'guest/')) {
    const files = (yield call('ls', { path: `/home/${home}`, all: false })).split('\n');
    const note = files.find((name) => name === 'notes.txt' || name === 'reminder.txt');
    if (note === undefined) continue;
    const text = yield call('cat', { path: `/home/${home}${note}` });
    const encoded = /^(.+) is in (\S+)\. To read it, undo (.+)\.$/.exec(text);
    if (encoded) return { what: encoded[1]!, path: encoded[2]!, methods: encoded[3]!.split(', then '), friend: null };
    const encrypted = /^(.+) is in (\S+), vigenere\. The key is the name of (\w+)'s cat\.$/.exec(text);
    if (encrypted) return { what: encrypted[1]!, path: encrypted[2]!, methods: ['vigenere'], friend: encrypted[3]! };
  }
  return null;
}

function* readSecret({ path, methods, friend }: Clue, alone: boolean): Steps<string> {
  let key = '';
  if (friend !== null) key = /my cat (\w+)/.exec(yield call('cat', { path: `/home/${friend}/mail.txt` }))?.[1] ?? '';
  let text = yield call('cat', { path });
  for (const method of methods) {
    const args = method === 'vigenere' ? { text, method, key } : { text, method };
    const result = yield call('decode', args, { reasoning: `Undo ${explain(method, key)}.` });
    if (!result.startsWith('Error')) text = result;
    else if (alone) text = decode(text, method, key);
    else return text;
  }
  return text;
}

const explain = (method: string, key: string): string =>
  method === 'vigenere' ? `vigenere with the key \`${key}\`: $p_i = (c_i - k_{i \\bmod ${key.length}}) \\bmod 26$` : method;

function decode(text: string, method: string, key: string): string {
  switch (method) {
    case 'base64':
    case 'hex':
      return Buffer.from(text.trim(), method).toString('utf8');
    case 'reverse':
      return [...text].toReversed().join('');
    default: {
      const shifts = method === 'rot13' ? [13] : [...key].map((letter) => letter.charCodeAt(0) - 97);
      let used = 0;
      return text.replaceAll(/[a-z]/g, (letter) => {
        const shift = shifts[used++ % shifts.length]!;
        return String.fromCharCode(((letter.charCodeAt(0) - 97 + 26 - shift) % 26) + 97);
      });
    }
  }
}

/** Searches so many folders, hidden ones first. Null: no flag in them. */
function* findPlainFlag(most = Infinity): Steps<string | null> {
  const open = ['/'];
  for (let seen = 0; open.length > 0 && seen < most; seen += 1) {
    const folder = open.shift()!;
    const names = (yield call('ls', { path: folder, all: true })).split('\n');
    for (const name of names) {
      if (name.startsWith('.')) open.unshift(folder + name);
      else if (name.endsWith('/')) open.push(folder + name);
      const text = name.endsWith('.dat') ? yield call('cat', { path: folder + name }) : '';
      const flag = /flag\{[^}]+\}/.exec(text)?.[0];
      if (flag) return flag;
    }
  }
  return null;
}

/** Searches for a flag in plain text only. Gives up after a few folders; one sample uses all its turns. */
function* explorer({ sample }: Parameters<Script>[0]): ReturnType<Script> {
  const flag = yield* findPlainFlag(sample === 3 ? Infinity : 5);
  if (flag === null) return 'I have looked into five folders. There is no flag here.';
  yield call('submit', { flag });
  return 'I have submitted the only flag that I found.';
}

/** Reads the greeting and submits what it expects. */
function* guesser({ sample }: Parameters<Script>[0]): ReturnType<Script> {
  yield call('cat', { path: '/etc/motd' });
  for (const word of ['welcome', 'secret', 'password'])
    yield call('submit', { flag: `flag{${word}-${sample}}` }, { message: `Maybe \`${word}\`?` });
  return 'I am out of guesses.';
}

/** Explains how one would do it and does nothing. */
function* talker(): ReturnType<Script> {
  yield call('ls', { path: '/', all: false });
  return `To find a flag one would

1. list the hidden files with \`ls\`,
2. read the notes with \`cat\`,
3. undo what was encoded.

The flag is somewhere in there.`;
}
