// The environment of python/counted_calls.py in the kit, as a process of its own: notes every execution in COUNT_FILE, prints its URL.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineEnvironment, serve, tool } from '@palestra/environment-kit';
import { z } from 'zod';

const counted = defineEnvironment({
  name: 'CountedEnv',
  splits: ['train'],
  tasks: () => Array.from({ length: 16 }, (_, id) => ({ id })),
  prompt: () => 'count',
  tools: {
    work: tool({
      description: 'Must run once for each id.',
      input: z.object({ id: z.string(), seconds: z.number() }),
      mode: 'concurrent',
      async run({ id, seconds }) {
        appendFileSync(process.env.COUNT_FILE, `${id}\n`);
        await sleep(seconds * 1000);
        return { content: id, reward: 1 };
      },
    }),
  },
});
const running = await serve([counted], { port: Number(process.env.PORT ?? 0) });
console.log(running.url);
