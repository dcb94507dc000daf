import { defineEnvironment, tool } from '@palestra/environment-kit';
import { z } from 'zod';
import { readme } from './card.ts';
import { METHODS } from './ciphers.ts';
import { Player } from './player.ts';
import { LEVELS, makeRoom } from './room.ts';

const SPLITS: Record<string, { firstSeed: number; count: number }> = {
  train: { firstSeed: 0, count: 300 },
  validation: { firstSeed: 1_000_000, count: 50 },
  test: { firstSeed: 2_000_000, count: 50 },
};
const taskSchema = z.object({ id: z.string().optional(), level: z.int().min(1).max(LEVELS), seed: z.int() });

export const ctf = defineEnvironment<z.infer<typeof taskSchema>, Player>({
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
  create({ task }) {
    const { level, seed } = taskSchema.parse(task);
    return new Player(makeRoom(level, seed));
  },
  prompt: ({ task }) =>
    `You sit at a terminal of a small machine room. Somewhere in it is a flag of the form flag{...}; this is level ${task.level} of ${LEVELS}.
Look around with ls and cat (ls shows hidden files only with all), decode what was made unreadable, scan for other machines and log in to them. Submit the flag when you have it: you have three attempts.`,
  tools: {
    ls: tool({
      description: 'Lists a directory of the machine you are on.',
      input: z.object({ path: z.string().default('/'), all: z.boolean().default(false).describe('Also hidden entries') }),
      run: ({ path, all }, { state }) => state.list(path, all),
    }),
    cat: tool({
      description: 'Shows a file of the machine you are on.',
      input: z.object({ path: z.string() }),
      run: ({ path }, { state }) => state.read(path),
    }),
    decode: tool({
      description: 'Undoes an encoding of a text; vigenere needs a key of letters.',
      input: z.object({ text: z.string().max(10_000), method: z.enum(METHODS), key: z.string().max(100).default('') }),
      run: ({ text, method, key }, { state }) => state.decode(text, method, key),
    }),
    scan: tool({
      description: 'Shows the machines that can be reached from the one you are on.',
      run: (_, { state }) => state.scan(),
    }),
    login: tool({
      description: 'Moves you to another machine.',
      input: z.object({ host: z.string(), password: z.string().default('') }),
      run: ({ host, password }, { state }) => state.login(host, password),
    }),
    submit: tool({
      description: 'Submits the flag.',
      input: z.object({ flag: z.string() }),
      mode: 'exclusive',
      run: ({ flag }, { state }) => state.submit(flag),
    }),
  },
});
