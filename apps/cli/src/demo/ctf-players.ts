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

/** What a note or a reminder says about a secret. */
interface Clue {
  what: string;
  /** Where the secret is; null: in the note itself. */
  path: string | null;
  text: string;
  /** In the order in which they are undone. */
  methods: string[];
  /** The cat of this person is the key; null: no key. */
  friend: string | null;
}

function* operator({ prompt, sample }: Parameters<Script>[0], alone: boolean): ReturnType<Script> {
  // Before any reward: where this call never returns, the episode must have no score.
  if (sample === 0 && /level [45] of/.test(prompt)) yield call('scan', {}, { message: 'First I look which machines I can reach.' });
  for (let machine = 0; machine < 2; machine += 1) {
    const files = yield* listFiles('People leave notes where they live, and hide what is secret.');
    const note = files.find((path) => /\/(?:notes|reminder)\.txt$/.test(path));
    if (note === undefined) {
      const flag = yield* readHidden(files);
      if (flag === null) return 'I have read the hidden files. There is no flag here.';
      yield call('submit', { flag }, { message: `No note says how, so it must lie here in plain text: \`${flag}\`` });
      return 'That was the only flag that I could find.';
    }
    const clue = yield* readNote(note);
    const secret = yield* readSecret(clue, alone);
    if (clue.what === 'The flag') {
      const message = `The secret is read:\n\n\`\`\`json\n${JSON.stringify({ note, undo: clue.methods, flag: secret }, null, 2)}\n\`\`\``;
      for (let attempt = 0; attempt < 3; attempt += 1) yield call('submit', { flag: secret }, attempt === 0 ? { message } : {});
      return 'I have no attempts left.';
    }
    const host = clue.what.replace('The password of ', '');
    const answer = yield call('login', { host, password: secret }, { reasoning: `The note names the password of ${host}: \`${secret}\`.` });
    if (!answer.startsWith('Logged in')) return `I cannot log in to ${host}: ${answer}`;
  }
  return 'There is no way on from here.';
}

function* listFiles(reasoning: string): Steps<string[]> {
  return (yield call('ls', { path: '/', all: true, recursive: true }, { reasoning })).split('\n').filter((path) => path.startsWith('/'));
}

function* readNote(path: string): Steps<Clue> {
  const note = yield call('cat', { path });
  const [, what = '', inline] = /^(.+?)(?:: (\S+))?(?:\n| is in)/.exec(note) ?? [];
  const friend = /the name of (\w+)'s cat/.exec(note)?.[1] ?? null;
  const methods = friend === null ? (/undo (.+)\.$/m.exec(note)?.[1]?.split(', then ') ?? []) : ['vigenere'];
  return { what, path: inline === undefined ? (/is in (\S+)\. /.exec(note)?.[1] ?? null) : null, text: inline ?? '', methods, friend };
}

function* readSecret({ path, text: inline, methods, friend }: Clue, alone: boolean): Steps<string> {
  let key = '';
  if (friend !== null) key = /my cat (\w+)/.exec(yield call('cat', { path: `/home/${friend}/mail.txt` }))?.[1] ?? '';
  let text = path === null ? inline : firstLine(yield call('cat', { path }));
  for (const method of methods) {
    const args = method === 'vigenere' ? { text, method, key } : { text, method };
    const result = firstLine(yield call('decode', args, { reasoning: `Undo ${explain(method, key)}.` }));
    if (!result.startsWith('Error')) text = result;
    else if (alone) text = decode(text, method, key);
    else return text;
  }
  return text;
}

/** Without the remark on the turns that are left. */
const firstLine = (text: string): string => text.split('\n')[0]!;

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

/** Reads hidden files. Null: no flag in plain text. */
function* readHidden(files: string[]): Steps<string | null> {
  for (const path of files.filter((one) => one.endsWith('.dat'))) {
    const flag = /flag\{[^}]+\}/.exec(yield call('cat', { path }))?.[0];
    if (flag) return flag;
  }
  return null;
}

/** Searches for a flag in plain text only, folder by folder. Gives up after five folders; one sample uses all its turns. */
function* explorer({ sample }: Parameters<Script>[0]): ReturnType<Script> {
  const open = ['/'];
  for (let seen = 0; open.length > 0 && (sample === 3 || seen < 5); seen += 1) {
    const folder = open.shift()!;
    const names = (yield call('ls', { path: folder, all: true })).split('\n');
    for (const name of names) {
      if (name.startsWith('.')) open.unshift(folder + name);
      else if (name.endsWith('/')) open.push(folder + name);
    }
    const flag = yield* readHidden(names.map((name) => folder + name));
    if (flag !== null) {
      yield call('submit', { flag });
      return 'I have submitted the only flag that I found.';
    }
  }
  return 'I have looked into five folders. There is no flag here.';
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
