// Records rollouts of 100 messages of 1 kB by `@palestra/client`, for client.mjs. Prints the seconds and the resident memory after each tenth.
// Usage: node --expose-gc client-upload-load.mjs '{"url", "messages"}'
import { PalestraClient } from '@palestra/client';
import { words } from './support/events.mjs';

const PER_ROLLOUT = 100;
const { url, messages } = JSON.parse(process.argv[2]);
const client = new PalestraClient({ url });
const content = words(1, 1_000);
const megabytes = [];
const started = performance.now();
for (let sent = 0; sent < messages; sent += PER_ROLLOUT) {
  const rollout = await client.rollouts.start({ runName: 'memory' });
  for (let index = 0; index < PER_ROLLOUT; index += 1) await rollout.log({ type: 'assistant_message', content });
  if ((sent + PER_ROLLOUT) % (messages / 10) < PER_ROLLOUT) {
    global.gc();
    megabytes.push(process.memoryUsage.rss() / 2 ** 20);
  }
}
const { unsent } = await client.close();
if (unsent > 0) throw new Error(`${unsent} events were not stored`);
console.log(JSON.stringify({ seconds: (performance.now() - started) / 1000, megabytes }));
