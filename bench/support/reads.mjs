// The reads of someone who watches a run: what its pages request.
import { wait } from './client.mjs';
import { atMost, quantile, shown } from './figures.mjs';
import { ABSENT_WORD, COMMON_WORD, RARE_WORD } from './uploads.mjs';

/** Goals of the p95, ms: when all is settled, and while there is a load or a backlog. */
const GOALS = {
  'runs list': [100, 100],
  overview: [100, 100],
  'figures of the run': [null, null],
  'explorer page': [20, 20],
  group: [50, 50],
  'search, rare word': [50, 1_000],
  'search, common word': [50, 1_000],
  'search, absent word': [50, 1_000],
  'search in all runs, rare word': [50, 1_000],
  'search in all runs, common word': [50, 1_000],
  'search in all runs, absent word': [50, 1_000],
};
const PAUSE_MS = 25;
/** Pages of the Explorer that are read one after the other before the first again. */
const DEPTH = 50;

/** The reads by name; each returns the answer of its request. */
export function readsOf(client, run) {
  const path = `/v1/runs/${encodeURIComponent(run)}`;
  const page = { next: null, depth: 0 };
  let groups = [];
  const search = (word) => () => client.get(`${path}/search?q=${word}`);
  const everywhere = (word) => () => client.get(`/v1/search?q=${word}`);
  return {
    'runs list': () => client.get('/v1/runs?limit=20'),
    overview: () => client.get(path),
    'figures of the run': () => client.get(`${path}/summary`),
    async 'explorer page'() {
      const answer = await client.get(`${path}/rollouts?limit=100&sort=reward&order=desc${page.next ? `&cursor=${page.next}` : ''}`);
      page.depth = page.depth === DEPTH ? 0 : page.depth + 1;
      page.next = page.depth === 0 ? null : answer.body.next && encodeURIComponent(answer.body.next);
      return answer;
    },
    async group() {
      if (groups.length === 0) ({ groups } = (await client.get(`${path}/groups?limit=100`)).body);
      // A run has none before its first rollouts are derived.
      return groups.length === 0 ? null : client.get(`${path}/groups/${encodeURIComponent(groups.pop().key)}`);
    },
    'search, rare word': search(RARE_WORD),
    'search, common word': search(COMMON_WORD),
    'search, absent word': search(ABSENT_WORD),
    'search in all runs, rare word': everywhere(RARE_WORD),
    'search in all runs, common word': everywhere(COMMON_WORD),
    'search in all runs, absent word': everywhere(ABSENT_WORD),
  };
}

/** Reads one after the other while `more(round)` is true. Returns the latencies by read and what each overview said about its age. */
export async function watch(client, run, more) {
  const latencies = {};
  const lags = [];
  const reads = readsOf(client, run);
  for (let round = 0; more(round); round += 1) {
    for (const [name, read] of Object.entries(reads)) {
      const answer = await read();
      if (answer === null) continue;
      (latencies[name] ??= []).push(answer.ms);
      if (name === 'overview') lags.push({ at: performance.now(), ...lagOf(answer) });
      await wait(PAUSE_MS);
    }
  }
  return { latencies, lags };
}

/** `seconds`: age of the newest event in the figures, when rollouts are missing in them; else 0. `pending` counts up to 10 000. */
const lagOf = ({ headers, body }) => {
  const asOf = headers['x-data-as-of'];
  const pending = Number(headers['x-data-pending'] ?? body.pending ?? 0);
  return { pending, seconds: pending === 0 || asOf === undefined ? 0 : Math.max(0, (Date.now() - Date.parse(asOf)) / 1000) };
};

/** A row per read with its p95, and the p50 for comparison. */
export function latencyRows(when, latencies, { busy = false } = {}) {
  return Object.entries(latencies).flatMap(([name, times]) => {
    const goal = GOALS[name][busy ? 1 : 0];
    const [p50, p95] = [quantile(times, 0.5), quantile(times, 0.95)];
    const label = `${when}: ${name}, p95 of ${times.length} (p50 ${p50.toFixed(1)})`;
    return goal === null ? shown(label, p95, 'ms') : atMost(goal, label, p95, 'ms');
  });
}

/** A read that follows a start: `GOALS` say nothing about it. */
export async function firstReads(client, run) {
  const rows = [];
  const path = `/v1/runs/${encodeURIComponent(run)}`;
  const reads = { ...readsOf(client, run), 'figures of the run, SkyRL lens': () => client.get(`${path}/summary?lens=skyrl`) };
  for (const [name, read] of Object.entries(reads)) {
    const answer = await read();
    if (answer === null) throw new Error(`${name} has nothing to read`);
    rows.push([name, answer.ms]);
  }
  return rows;
}
