// A one-turn environment for a very small model: its first word is the answer. Prints its URL.
import { defineEnvironment, serve, tool, z } from '@palestra/environment-kit';

const COLOURS = ['red', 'orange', 'yellow', 'green', 'blue', 'indigo', 'violet', 'white'];

const colours = defineEnvironment({
  name: 'colours',
  description: 'Repeat the colour of the question.',
  splits: ['train'],
  tasks: () => COLOURS.map((colour) => ({ id: colour })),
  deterministic: true,
  rewardRange: [0, 1],
  prompt: ({ task }) => `colour ${task.id}`,
  create: () => ({}),
  tools: {
    answer: tool({
      description: 'Gets the last message of the model.',
      input: z.object({ text: z.string() }),
      // A model that calls nothing ends its episode with this tool.
      terminal: true,
      run({ text }, { task }) {
        const correct = text.trim().split(/\s+/)[0] === task.id;
        return { content: correct ? 'Right.' : `Wrong: ${task.id}.`, reward: correct ? 1 : 0, finished: true };
      },
    }),
  },
});

const { url } = await serve([colours], { port: Number(process.env.PORT ?? 0) });
console.log(url);
