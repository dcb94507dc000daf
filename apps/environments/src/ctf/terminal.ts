import { textBlock, type ToolResult } from '@palestra/environment-kit';
import { decode, type Method } from './ciphers.ts';
import type { Machine, Room } from './room.ts';

/** Calls of an episode. Every level needs at most nine. */
export const TURNS = 10;
const FLAG_ATTEMPTS = 3;
/** Each is given once for the same file, secret or machine. What is left to 1 is for the flag. */
const REWARDS = { clue: 0.05, secret: 0.1, login: 0.15 };
const WARNED_TURNS = 3;

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

/** An episode: the current machine, what was reached, and the remaining turns and attempts at flags. */
export class Terminal {
  readonly #room: Room;
  readonly #entered: Set<string>;
  readonly #rewarded = new Set<string>();
  #machine: Machine;
  #attemptsLeft = FLAG_ATTEMPTS;
  #turnsLeft = TURNS;
  #cents = 0;

  constructor(room: Room) {
    this.#room = room;
    this.#machine = room.machines.get(room.start)!;
    this.#entered = new Set([room.start]);
  }

  /** Counts the call as a turn. The last turn ends the episode. */
  play(act: () => ToolResult): ToolResult {
    this.#turnsLeft -= 1;
    const result = act();
    if (result.finished || this.#turnsLeft > WARNED_TURNS) return result;
    const left = this.#turnsLeft === 0 ? 'That was your last turn.' : `Turns left: ${this.#turnsLeft}.`;
    // Some clients join blocks without a separator.
    return { ...result, content: [textBlock(String(result.content)), textBlock(`\n${left}`)], finished: this.#turnsLeft === 0 };
  }

  list(path: string, all: boolean, recursive: boolean): ToolResult {
    const folder = normalise(path);
    const prefix = folder === '/' ? '/' : `${folder}/`;
    const entries = new Set<string>();
    for (const file of this.#machine.files.keys()) {
      if (!file.startsWith(prefix)) continue;
      const parts = file.slice(prefix.length).split('/');
      if (!all && (recursive ? parts : parts.slice(0, 1)).some((part) => part.startsWith('.'))) continue;
      entries.add(recursive ? file : parts.length > 1 ? `${parts[0]}/` : parts[0]!);
    }
    if (entries.size > 0) return say([...entries].toSorted().join('\n'));
    const exists = [...this.#machine.files.keys()].some((file) => file.startsWith(prefix));
    return say(exists ? '(empty)' : `ls: ${folder}: no such directory`);
  }

  read(path: string): ToolResult {
    const file = normalise(path);
    const text = this.#machine.files.get(file);
    if (text === undefined) return say(`cat: ${file}: no such file`);
    return say(text, this.#machine.clues.has(file) ? this.#rewardOnce(`${this.#machine.name}:${file}`, REWARDS.clue) : 0);
  }

  decode(text: string, method: Method, key: string): ToolResult {
    if (method === 'vigenere' && !/^[a-z]+$/i.test(key)) return say('decode: vigenere needs a key of letters');
    const decoded = decode(text, method, key);
    // A secret that stood in plain text was not decoded.
    const isSecret = decoded !== text && decoded.trim() === this.#machine.secret;
    return say(decoded, isSecret ? this.#rewardOnce(`${this.#machine.name} decoded`, REWARDS.secret) : 0);
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
    return say(`Logged in to ${host}. ${machine.files.get('/etc/motd')}`, known ? 0 : this.#rewardOnce(`${host} entered`, REWARDS.login));
  }

  submit(flag: string): ToolResult {
    this.#attemptsLeft -= 1;
    if (flag.trim() === this.#room.flag) {
      const reward = (100 - this.#cents) / 100;
      return { content: 'Captured!', reward, finished: true, metadata: { captured: true } };
    }
    const finished = this.#attemptsLeft === 0;
    const content = finished ? 'Wrong flag, and that was your last attempt.' : `Wrong flag, ${this.#attemptsLeft} attempts left.`;
    return { content, reward: 0, finished, metadata: { captured: false } };
  }

  #rewardOnce(what: string, reward: number): number {
    if (this.#rewarded.has(what)) return 0;
    this.#rewarded.add(what);
    this.#cents += Math.round(reward * 100);
    return reward;
  }
}
