// Short rollouts loaded into the store while someone watches: the rate, how far figures lag, reads during the load, while it settles and
// after it, and how fresh a burst is. From 500 000 rollouts on, the same is measured at 100 000 first, for the growth.
import { SDK_REPEATS, wait } from './support/client.mjs';
import { atLeast, atMost, quantile, shown } from './support/figures.mjs';
import { latencyRows, watch } from './support/reads.mjs';
import { allSettled, loadRollouts, ROLLOUTS, RUNS, settled } from './support/store.mjs';
import { sampleMemory } from './support/usage.mjs';

const GROWTH_FROM = 100_000;
const GROWTH_UNTIL = 500_000;
const BURST = Math.min(20_000, ROLLOUTS);
const SETTLED_ROUNDS = 30;
/** Flat means a growth of at most this. */
const FLAT = 1.5;

/** Loads until the store has so many rollouts. `during` and `settling`: reads and lags; `settleSeconds` from the last acknowledgement. */
async function stage(store, rollouts) {
  const client = store.client();
  const memory = sampleMemory(store.palestra().pid);
  let result = null;
  let acknowledgedAt = null;
  const loading = store.load(rollouts).then((value) => {
    acknowledgedAt = performance.now();
    return (result = value);
  });
  // The run exists from the first acknowledged post on.
  while (acknowledgedAt === null && !(await client.get('/v1/runs?limit=20')).body.runs.some(({ name }) => name === RUNS[0])) await wait(20);
  const watching = watch(client, RUNS[0], () => acknowledgedAt === null);
  const [, during] = await Promise.all([loading, watching]);
  let settleSeconds = null;
  const settling = allSettled(client, rollouts, acknowledgedAt).then((seconds) => (settleSeconds = seconds));
  const [, while_] = await Promise.all([settling, watch(client, RUNS[0], (round) => round === 0 || settleSeconds === null)]);
  const megabytes = memory.end();
  const after = await watch(client, RUNS[0], (round) => round < SETTLED_ROUNDS);
  return { result, during, settling: while_, settleSeconds, after, megabytes };
}

const lagRows = (when, { lags }) => {
  if (lags.length === 0) return [];
  const ages = lags.map(({ seconds }) => seconds);
  const pending = lags.map(({ pending: count }) => count);
  return [
    shown(`${when}: age of the figures, p50`, quantile(ages, 0.5), 's'),
    shown(`${when}: age of the figures, highest`, Math.max(...ages), 's'),
    shown(`${when}: rollouts missing in the figures of one run (at most 10 000 are counted), p50`, quantile(pending, 0.5), ''),
    shown(`${when}: the same, highest`, Math.max(...pending), ''),
  ];
};

/** Uploads a new run and measures the time from the last acknowledgement until its figures and words are complete. */
async function burstRows(store) {
  const run = 'burst';
  const { seconds } = await loadRollouts(store.palestra(), { from: 0, count: BURST, run });
  const from = performance.now();
  const times = await settled(store.client(), run, BURST, from);
  return [
    shown(`burst of ${BURST}: acknowledged in`, seconds, 's'),
    atMost(5, `burst of ${BURST}: figures complete after the last acknowledgement`, times.figures, 's'),
    atMost(10, `burst of ${BURST}: searchable after the last acknowledgement`, times.searchable, 's'),
  ];
}

function stageRows({ result, during, settling, settleSeconds, after, megabytes }, rollouts) {
  const label = `${rollouts} rollouts`;
  const quarter = megabytes[Math.floor(megabytes.length / 4)];
  return [
    shown(`${label}: loaded per second`, result.rollouts / result.seconds, 'rollouts/s'),
    shown(`${label}: events per second`, result.events / result.seconds, '/s'),
    shown(`${label}: posts that were refused and sent again`, result.refusals, ''),
    atMost(SDK_REPEATS, `${label}: most refusals of one post`, result.mostRefusals, 'refusals'),
    atMost(60, `${label}: settled after the last acknowledgement`, settleSeconds, 's'),
    shown(`${label}: memory of API and worker at the start`, megabytes[0], 'MB'),
    shown(`${label}: memory of API and worker after a quarter of the time`, quarter, 'MB'),
    shown(`${label}: memory of API and worker when settled`, megabytes.at(-1), 'MB'),
    ...lagRows(`${label}, during the load`, during),
    ...lagRows(`${label}, while settling`, settling),
    ...latencyRows(`${label}, during the load`, during.latencies, { busy: true }),
    ...latencyRows(`${label}, while settling`, settling.latencies, { busy: true }),
    ...latencyRows(`${label}, settled`, after.latencies),
  ];
}

/** The rates and latencies of the large store as multiples of those of the small one. */
function growthRows(small, large) {
  const rate = ({ result }) => result.rollouts / result.seconds;
  const p95 = ({ after }, name) => quantile(after.latencies[name], 0.95);
  return [
    atLeast(1 / FLAT, 'growth: rollouts loaded per second', rate(large) / rate(small), 'times'),
    ...Object.keys(small.after.latencies).map((name) =>
      atMost(FLAT, `growth: settled ${name}, p95`, p95(large, name) / p95(small, name), 'times'),
    ),
  ];
}

export async function benchUploads(store) {
  if (store.loaded() > 0) throw new Error('the uploads are measured into an empty store: name this bench before those that read it');
  const small = ROLLOUTS >= GROWTH_UNTIL ? await stage(store, GROWTH_FROM) : null;
  const all = await stage(store, ROLLOUTS);
  return [
    ...(small === null ? [] : stageRows(small, GROWTH_FROM)),
    ...stageRows(all, ROLLOUTS),
    ...(small === null ? [] : growthRows(small, all)),
    ...(await burstRows(store)),
  ];
}
