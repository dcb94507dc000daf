import { defineEnvironment, tool } from '@palestra/environment-kit';
import { z } from 'zod';
import { readme } from './card.ts';

const TASKS = Array.from({ length: 1000 }, (_, id) => ({ id }));

/** Says back what it is told: for tests and benches. */
export const echo = defineEnvironment<{ id: number }>({
  name: 'echo',
  description: 'Says back what it is told, for 0.1 a time, and never ends. For tests and benches.',
  readme,
  splits: ['train'],
  tasks: () => TASKS,
  deterministic: true,
  prompt: ({ task }) => `Task ${task.id}: call echo with any text.`,
  tools: {
    echo: tool({
      description: 'Returns the text.',
      input: z.object({ text: z.string() }),
      run: ({ text }) => ({ content: text, reward: 0.1 }),
    }),
  },
});
