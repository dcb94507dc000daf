// Search in the loaded store: rare, common and absent words in a run and in all runs, right after a restart and warm, and a regex whose text is
// in one of 10 000 rollouts.
import { atMost, shown } from './support/figures.mjs';
import { latencyRows, readsOf } from './support/reads.mjs';
import { RUNS } from './support/store.mjs';
import { NEEDLE, RARE_EVERY } from './support/uploads.mjs';

const ROUNDS = 50;
const isSearch = ([name]) => name.startsWith('search');

/** Seconds until the first hit, and until all hits, page by page. */
async function findNeedles(client, scope) {
  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1000;
  let first = null;
  let hits = 0;
  let pages = 0;
  for (let next = ''; next !== null; pages += 1) {
    const cursor = next === '' ? '' : `&cursor=${encodeURIComponent(next)}`;
    const { body } = await client.get(`${scope}?mode=regex&limit=100&q=${encodeURIComponent(NEEDLE)}${cursor}`);
    hits += body.hits.length;
    if (hits > 0) first ??= seconds();
    next = body.next;
  }
  return { first, all: seconds(), hits, pages };
}

/** Numbers of rollouts below `rollouts` with the rare word, of one run by the parity of its numbers. */
const needlesOf = (rollouts, parity) =>
  Array.from({ length: Math.floor(rollouts / RARE_EVERY) + 1 }, (_, at) => at * RARE_EVERY + (RARE_EVERY >> 1)).filter(
    (number) => number < rollouts && (parity === null || number % 2 === parity),
  ).length;

export async function benchSearch(store) {
  await store.fill();
  const rows = [];
  await store.restart('stop');
  for (const [name, read] of Object.entries(readsOf(store.client(), RUNS[0])).filter(isSearch))
    rows.push(atMost(500, `${store.loaded()} rollouts, first after a restart: ${name}`, (await read()).ms, 'ms'));
  const latencies = {};
  const reads = Object.entries(readsOf(store.client(), RUNS[0])).filter(isSearch);
  for (let round = 0; round < ROUNDS; round += 1) for (const [name, read] of reads) (latencies[name] ??= []).push((await read()).ms);
  rows.push(...latencyRows(`${store.loaded()} rollouts`, latencies));
  for (const [where, scope, parity] of [
    ['a run', `/v1/runs/${RUNS[0]}/search`, 0],
    ['all runs', '/v1/search', null],
  ]) {
    const expected = needlesOf(store.loaded(), parity);
    if (expected === 0) continue;
    const { first, all, hits, pages } = await findNeedles(store.client(), scope);
    // Other benches may have uploaded runs with the same text.
    if (hits < expected || (parity !== null && hits > expected)) throw new Error(`the regex found ${hits} of ${expected} in ${where}`);
    rows.push(atMost(10, `regex in ${where}: the first of ${hits}`, first, 's'), shown(`regex in ${where}: all, ${pages} pages`, all, 's'));
  }
  return rows;
}
