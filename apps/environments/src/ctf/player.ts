import type { ToolResult } from '@palestra/environment-kit';
import { decode, type Method } from './ciphers.ts';
import type { Machine, Room } from './room.ts';

const FLAG_ATTEMPTS = 3;
const LOGIN_REWARD = 0.1;

const say = (content: string, reward = 0): ToolResult => ({ content, reward });

/** `/a//b/../c/` -> `/a/c` */
function normalise(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}

/** A player: the current machine and folder, and the remaining attempts at flags. */
export class Player {
  readonly #room: Room;
  readonly #entered: Set<string>;
  #machine: Machine;
  #attemptsLeft = FLAG_ATTEMPTS;

  constructor(room: Room) {
    this.#room = room;
    this.#machine = room.machines.get(room.start)!;
    this.#entered = new Set([room.start]);
  }

  list(path: string, all: boolean): ToolResult {
    const folder = normalise(path);
    const prefix = folder === '/' ? '/' : `${folder}/`;
    const entries = new Set<string>();
    for (const file of this.#machine.files.keys()) {
      if (!file.startsWith(prefix)) continue;
      const [first, ...rest] = file.slice(prefix.length).split('/');
      entries.add(rest.length > 0 ? `${first}/` : first!);
    }
    if (entries.size === 0) return say(`ls: ${folder}: no such directory`);
    const shown = [...entries].filter((name) => all || !name.startsWith('.')).toSorted();
    return say(shown.join('\n') || '(empty)');
  }

  read(path: string): ToolResult {
    const file = normalise(path);
    return say(this.#machine.files.get(file) ?? `cat: ${file}: no such file`);
  }

  decode(text: string, method: Method, key: string): ToolResult {
    if (method === 'vigenere' && !/^[a-z]+$/i.test(key)) return say('decode: vigenere needs a key of letters');
    return say(decode(text, method, key));
  }

  scan(): ToolResult {
    const { name, neighbours } = this.#machine;
    return say([`You are on ${name}.`, ...neighbours.map((host) => `${host}: port 22 open`)].join('\n'));
  }

  login(host: string, password: string): ToolResult {
    if (!this.#machine.neighbours.includes(host)) return say(`login: no route to ${host}`);
    const machine = this.#room.machines.get(host)!;
    const known = this.#entered.has(host);
    if (!known && machine.password !== password) return say('login: permission denied');
    this.#machine = machine;
    this.#entered.add(host);
    return say(`Logged in to ${host}. ${machine.files.get('/etc/motd')}`, known ? 0 : LOGIN_REWARD);
  }

  submit(flag: string): ToolResult {
    this.#attemptsLeft -= 1;
    if (flag.trim() === this.#room.flag) {
      const logins = this.#room.machines.size - 1;
      return {
        content: 'Captured!',
        reward: Math.round((1 - logins * LOGIN_REWARD) * 10) / 10,
        finished: true,
        metadata: { captured: true },
      };
    }
    const finished = this.#attemptsLeft === 0;
    const content = finished ? 'Wrong flag, and that was your last attempt.' : `Wrong flag, ${this.#attemptsLeft} attempts left.`;
    return { content, reward: 0, finished, metadata: { captured: false } };
  }
}
