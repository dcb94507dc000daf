import { defineEnvironment, tool } from '@palestra/environment-kit';
import { z } from 'zod';
import { readme } from './card.ts';
import type { Level } from './families.ts';
import { players } from './players.ts';
import { FIRST_SEEDS, levelOf, LEVELS, makeProblem, type Problem } from './problems.ts';
import { Rational } from './rational.ts';

const COUNTS: Record<string, number> = { train: 1000, validation: 200, test: 200 };
const taskSchema = z.object({
  id: z.string().optional(),
  /** Default: by the seed. */
  level: z.int().min(1).max(LEVELS).optional(),
  seed: z.int(),
});
type Task = z.infer<typeof taskSchema>;

function problemOf(task: Task): Problem {
  const { seed, level } = taskSchema.parse(task);
  return makeProblem(seed, level as Level | undefined);
}

export const math = defineEnvironment<Task, Problem>({
  name: 'math',
  description: 'One question with a rational answer, checked exactly, in one turn; five levels.',
  readme,
  splits: Object.keys(COUNTS),
  tasks: (split) =>
    Array.from({ length: COUNTS[split]! }, (_, index) => {
      const seed = FIRST_SEEDS[split as keyof typeof FIRST_SEEDS] + index;
      return { id: `${split}-${index}`, level: levelOf(seed), seed };
    }),
  deterministic: true,
  rewardRange: [0, 1],
  players,
  solve: (task) => [{ tool: 'submit', input: { answer: String(problemOf(task).answer) } }],
  create: ({ task }) => problemOf(task),
  prompt: ({ state }) =>
    `${state.question}\n\nYou have one turn: submit an integer, a fraction such as 7/4, or a decimal such as 1.75, with the exact value.`,
  tools: {
    submit: tool({
      description: 'Submit the answer. You have one attempt.',
      input: z.object({ answer: z.string().describe('An integer, a fraction or a decimal') }),
      mode: 'exclusive',
      run({ answer }, { state }) {
        const given = Rational.parse(answer);
        const correct = given?.equals(state.answer) ?? false;
        const content = correct
          ? 'Correct.'
          : `Wrong: it is ${state.answer}.${given ? '' : ' Your answer is not a number of the forms asked for.'}`;
        return { content, reward: correct ? 1 : 0, finished: true, metadata: { correct } };
      },
    }),
  },
});
