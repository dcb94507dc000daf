import { defineEnvironment, tool } from '@palestra/environment-kit';
import { z } from 'zod';
import { readme } from './card.ts';
import { makeProblem, type Problem } from './problems.ts';
import { Rational } from './rational.ts';

const SPLITS: Record<string, { firstSeed: number; count: number }> = {
  train: { firstSeed: 0, count: 1000 },
  validation: { firstSeed: 1_000_000, count: 200 },
  test: { firstSeed: 2_000_000, count: 200 },
};
const taskSchema = z.object({ id: z.string().optional(), seed: z.int() });

export const math = defineEnvironment<z.infer<typeof taskSchema>, Problem>({
  name: 'math',
  description: 'One question with a rational answer, checked exactly, in one turn.',
  readme,
  splits: Object.keys(SPLITS),
  tasks: (split) =>
    Array.from({ length: SPLITS[split]!.count }, (_, index) => ({ id: `${split}-${index}`, seed: SPLITS[split]!.firstSeed + index })),
  deterministic: true,
  create: ({ task }) => makeProblem(taskSchema.parse(task).seed),
  prompt: ({ state }) => `${state.question}\n\nSubmit an integer, a fraction such as 7/4, or a decimal such as 1.75.`,
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
