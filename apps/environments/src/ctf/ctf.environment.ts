import { defineEnvironment, type Session, tool, type ToolResult, type ToolReturn } from '@palestra/environment-kit';
import { z } from 'zod';
import { readme } from './card.ts';
import { METHODS } from './ciphers.ts';
import { players, solve } from './players.ts';
import { LEVELS, makeRoom } from './room.ts';
import { Terminal, TURNS } from './terminal.ts';

const SPLITS: Record<string, { firstSeed: number; count: number }> = {
  train: { firstSeed: 0, count: 300 },
  validation: { firstSeed: 1_000_000, count: 50 },
  test: { firstSeed: 2_000_000, count: 50 },
};
const taskSchema = z.object({
  id: z.string().optional(),
  level: z.int().min(1).max(LEVELS),
  seed: z.int(),
  /** Tools that answer with an error, or never, in this task. */
  faults: z.record(z.string(), z.enum(['error', 'hang'])).optional(),
});
type Task = z.infer<typeof taskSchema>;

/** Runs the tool unless the task has a fault for it. */
const play =
  <Input>(name: string, run: (input: Input, terminal: Terminal) => ToolResult) =>
  (input: Input, { task, state, signal }: Session<Task, Terminal>): ToolReturn | Promise<ToolReturn> => {
    switch (task.faults?.[name]) {
      case 'error':
        return state.play(() => ({
          content: `Error: ${name}: cannot load libcipher.so.2: no such file`,
          metadata: { error: 'library_missing' },
        }));
      case 'hang':
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }));
      default:
        return state.play(() => run(input, state));
    }
  };

export const ctf = defineEnvironment<Task, Terminal>({
  name: 'ctf',
  description: 'Capture the flag in a small machine room: hidden files, encoded and encrypted notes, a toy network.',
  readme,
  splits: Object.keys(SPLITS),
  tasks: (split) =>
    Array.from({ length: SPLITS[split]!.count }, (_, index) => ({
      id: `${split}-${index}`,
      level: 1 + (index % LEVELS),
      seed: SPLITS[split]!.firstSeed + index,
    })),
  deterministic: true,
  rewardRange: [0, 1],
  players,
  solve: ({ level, seed }) => solve(makeRoom(level, seed)),
  create({ task }) {
    const { level, seed } = taskSchema.parse(task);
    return new Terminal(makeRoom(level, seed));
  },
  prompt: ({ task }) =>
    `You sit at a terminal of a small machine room. Somewhere in it is a flag of the form flag{...}; this is level ${task.level} of ${LEVELS}.

Look around with ls and cat: ls shows hidden files only with all, and everything below a directory with recursive. Notes and mails of the users say where the flag is and how to read it. Decode what was made unreadable. On levels 4 and 5 the flag is on another machine: scan for it and log in.

You have ${TURNS} turns; each call of a tool is one. Submit the flag when you have it: the third wrong flag ends the episode.`,
  tools: {
    ls: tool({
      description: 'Lists a directory of the machine you are on.',
      input: z.strictObject({
        path: z.string().default('/').describe('An absolute path'),
        all: z.boolean().default(false).describe('Also hidden entries'),
        recursive: z.boolean().default(false).describe('All files below the directory, by their full paths'),
      }),
      run: play('ls', ({ path, all, recursive }, terminal) => terminal.list(path, all, recursive)),
    }),
    cat: tool({
      description: 'Shows a file of the machine you are on.',
      input: z.strictObject({ path: z.string().describe('The absolute path of a file') }),
      run: play('cat', ({ path }, terminal) => terminal.read(path)),
    }),
    decode: tool({
      description: 'Undoes an encoding of a text; vigenere needs a key of letters.',
      input: z.strictObject({
        text: z.string().max(10_000).describe('The encoded text alone'),
        method: z.enum(METHODS).describe('The encoding to undo'),
        key: z.string().max(100).default('').describe('Only for vigenere'),
      }),
      run: play('decode', ({ text, method, key }, terminal) => terminal.decode(text, method, key)),
    }),
    scan: tool({
      description: 'Shows the machines that can be reached from the one you are on.',
      run: play('scan', (_, terminal) => terminal.scan()),
    }),
    login: tool({
      description: 'Moves you to another machine.',
      input: z.strictObject({
        host: z.string().describe('The name of a machine that scan shows'),
        password: z.string().default('').describe('Not needed for a machine where you were before'),
      }),
      run: play('login', ({ host, password }, terminal) => terminal.login(host, password)),
    }),
    submit: tool({
      description: 'Submits the flag.',
      input: z.strictObject({ flag: z.string().describe('The whole flag: flag{...}') }),
      mode: 'exclusive',
      run: play('submit', ({ flag }, terminal) => terminal.submit(flag)),
    }),
  },
});
