import { defineEnvironment, serve, tool, z } from '@palestra/environment-kit';

// `look` gives .25 and continues, `finish` ends with 1, `vanish` kills this process. Prints its URL.
const fragile = defineEnvironment({
  name: 'fragile',
  splits: ['train'],
  tasks: () => [{ id: 0 }, { id: 1 }],
  prompt: ({ task }) => `Task ${task.id}: look, then finish.`,
  create: () => ({}),
  tools: {
    look: tool({ description: 'Looks.', input: z.object({}), run: () => ({ content: 'nothing', reward: 0.25 }) }),
    finish: tool({ description: 'Ends.', input: z.object({}), run: () => ({ content: 'done', reward: 1, finished: true }) }),
    vanish: tool({
      description: 'Ends the server.',
      input: z.object({}),
      run: () => {
        process.kill(process.pid, 'SIGKILL');
        return 'never';
      },
    }),
  },
});
const { url } = await serve([fragile]);
console.log(url);
