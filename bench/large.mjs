// Uploads rollouts of 400 messages of 1 kB to a separate service. Measures ingest, progress of figures and of the search index, reads. PALESTRA_BENCH_LARGE:
// their number, default 5 000 (2 GB).
import { openClient, wait } from './support/client.mjs';
import { atMost, shown } from './support/figures.mjs';
import { apiKey, discard, startPalestra } from './support/processes.mjs';
import { latencyRows, watch } from './support/reads.mjs';
import { loadRollouts, settled } from './support/store.mjs';
import { sampleMemory } from './support/usage.mjs';

const LARGE = Number(process.env.PALESTRA_BENCH_LARGE ?? 5_000);
const SHAPE = { run: 'large', messages: 400, characters: 1_000, batch: 1, connections: 16 };
const ROUNDS = 20;
const CHECK_MS = 1_000;

/** Longest time without a newly searchable rollout. Looks for the word of each of a hundred rollouts in their order of upload. */
function followIndex(client, run) {
  let longest = 0;
  let at = 0;
  let changed = performance.now();
  let ended = false;
  const following = (async () => {
    while (!ended) {
      const number = Math.floor((at * LARGE) / 100);
      const { body } = await client.get(`/v1/runs/${run}/search?q=question${number}&limit=1`);
      if (body.hits.length > 0 || at === 100) {
        at = Math.min(100, at + 1);
        changed = performance.now();
      } else await wait(CHECK_MS);
      longest = Math.max(longest, performance.now() - changed);
    }
  })();
  return async () => {
    ended = true;
    await following;
    return longest / 1000;
  };
}

export async function benchLarge() {
  const palestra = await startPalestra();
  const client = openClient(palestra.url, { 'x-api-key': apiKey }, 8);
  const memory = sampleMemory(palestra.pid);
  try {
    // The run must exist before someone searches in it.
    await loadRollouts(palestra, { from: 0, count: 1, ...SHAPE });
    const endIndex = followIndex(client, SHAPE.run);
    const { events, bytes, seconds, refusals } = await loadRollouts(palestra, { from: 1, count: LARGE - 1, ...SHAPE });
    const times = await settled(client, SHAPE.run, LARGE);
    const longest = await endIndex();
    const megabytes = memory.end();
    const { latencies } = await watch(client, SHAPE.run, (round) => round < ROUNDS);
    return [
      shown('events per second', events / seconds, '/s'),
      shown('megabytes per second', bytes / 1e6 / seconds, 'MB/s'),
      shown('posts that were refused and sent again', refusals, ''),
      atMost(60, 'figures complete after the last acknowledgement', times.figures, 's'),
      atMost(60, 'searchable after the last acknowledgement', times.searchable, 's'),
      shown('longest time without progress of the search index', longest, 's'),
      shown('highest memory of API and worker', Math.max(...megabytes), 'MB'),
      ...latencyRows('settled', latencies),
    ];
  } finally {
    memory.end();
    client.close();
    await discard(palestra);
  }
}
