import { defineEnvironment, imageBlock, textBlock, tool, z } from '@palestra/environment-kit';

/** Sums with an image, in two levels. The tool fails in the last task of the split `train`. Tests also pass this file to `--module`. */
export const sums = defineEnvironment<{ a: number; level: number }>({
  name: 'sums',
  description: 'Adds one. For tests.',
  readme: '# sums\n\nAdds one.',
  splits: ['train', 'test'],
  tasks: (split) => Array.from({ length: split === 'test' ? 20 : 101 }, (_, a) => ({ a, level: 1 + (a % 2) })),
  players: [
    {
      name: 'expert',
      description: 'Adds one.',
      async play({ prompt, call }) {
        await call('answer', { sum: Number(/Task (\d+)/.exec(prompt)![1]) + 1 });
      },
    },
  ],
  solve: ({ a }) => [{ tool: 'answer', input: { sum: a + 1 } }],
  prompt: ({ task }) => [textBlock(`Task ${task.a}: add one and answer.`), imageBlock('iVBORw0KGgo=', 'image/png')],
  tools: {
    answer: tool({
      description: 'The sum.',
      input: z.object({ sum: z.number() }),
      run: ({ sum }, { task }) => {
        if (task.a === 100) throw new Error('the calculator broke');
        return { content: sum === task.a + 1 ? 'Right.' : 'Wrong.', reward: sum === task.a + 1 ? 1 : 0, finished: true };
      },
    }),
    look: tool({ description: 'Shows it again.', input: z.object({}), run: (_, { task }) => `It is ${task.a}.` }),
  },
});
