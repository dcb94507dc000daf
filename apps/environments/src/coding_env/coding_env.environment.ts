import { defineActionEnvironment, z } from '@palestra/environment-kit';
import { isolation, PROGRAM_LIMITS, PythonConsole, requireSandbox } from '@palestra/sandbox';
import { readme } from './card.ts';
import { rewardProgram } from './rewards.ts';

const LONGEST_PROGRAM_CHARACTERS = 200_000;

/** OpenEnv's coding environment: runs a program, returns its output, and rewards its form. */
export function defineCodingEnv(limits = PROGRAM_LIMITS, detect = isolation) {
  return defineActionEnvironment({
    name: 'coding_env',
    description: 'Runs Python, isolated, and shows what it printed; names live on from one program to the next. OpenEnv’s coding_env.',
    readme,
    splits: ['train'],
    tasks: () => [{}],
    action: z.object({ code: z.string().max(LONGEST_PROGRAM_CHARACTERS).describe('A Python program.') }),
    observation: z.object({ stdout: z.string(), stderr: z.string(), exit_code: z.int() }),
    instructions: 'Runs a Python program with the standard library; there is no network. Only what it prints is shown.',
    async create({ signal }) {
      requireSandbox(await detect());
      return new PythonConsole(signal, limits);
    },
    async reset({ state }) {
      await state.warmUp();
      return { observation: { stdout: '', stderr: '', exit_code: 0 } };
    },
    async step({ code }, { state }) {
      const { stdout, stderr, exitCode, parses } = await state.run(code);
      const { reward, violation } = rewardProgram(code, parses);
      return {
        observation: { stdout, stderr, exit_code: exitCode },
        reward,
        metadata: violation === null ? null : { safety_violation: violation },
      };
    },
    teardown: ({ state }) => state.close(),
  });
}

export const codingEnv = defineCodingEnv();
