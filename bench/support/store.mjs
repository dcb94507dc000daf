// The store that several benches share: a service, started as `npm start` starts it, into which `PALESTRA_BENCH_ROLLOUTS` short rollouts
// were loaded over HTTP, once.
import { rmSync } from 'node:fs';
import path from 'node:path';
import { openClient, wait } from './client.mjs';
import { apiKey, root, startPalestra, time } from './processes.mjs';
import { runOf } from './uploads.mjs';

export const ROLLOUTS = Number(process.env.PALESTRA_BENCH_ROLLOUTS ?? 200_000);
export const RUNS = [runOf(0), runOf(1)];
const SETTLE_LIMIT_MS = 3_600_000;

/** Runs upload-load.mjs to its end. */
export async function loadRollouts(palestra, options) {
  const given = JSON.stringify({ url: palestra.url, apiKey, ...options });
  const { stdout } = await time(process.execPath, [path.join(root, 'bench/upload-load.mjs'), given]);
  return JSON.parse(stdout);
}

/** Waits until the figures of a run have so many rollouts and its words are searchable. Returns the seconds since `from` for both. */
export async function settled(client, run, rollouts, from = performance.now()) {
  const seconds = () => (performance.now() - from) / 1000;
  let figures = null;
  let searchable = null;
  const name = encodeURIComponent(run);
  for (const deadline = performance.now() + SETTLE_LIMIT_MS; figures === null || searchable === null;) {
    if (figures === null) {
      const { body } = await client.get(`/v1/runs/${name}`);
      if (body.num_rollouts > rollouts) throw new Error(`${run} has ${body.num_rollouts} rollouts, ${rollouts} were uploaded`);
      if (body.num_rollouts === rollouts && body.pending === null) figures = seconds();
    }
    if (searchable === null && !(await client.get(`/v1/runs/${name}/search?q=model&limit=1`)).body.pending) searchable = seconds();
    if (performance.now() > deadline) throw new Error(`${run} did not settle within ${SETTLE_LIMIT_MS / 1000} s`);
    await wait(100);
  }
  return { figures, searchable };
}

/** Waits for all runs of the load. Returns the seconds since `from` until the last is settled. */
export async function allSettled(client, loaded, from) {
  const counts = RUNS.map((_, at) => Math.ceil((loaded - at) / RUNS.length));
  const times = await Promise.all(RUNS.map((run, at) => settled(client, run, counts[at], from)));
  return Math.max(...times.flatMap(({ figures, searchable }) => [figures, searchable]));
}

export function openStore() {
  let palestra = null;
  let client = null;
  let loaded = 0;
  const start = async (dataDir) => {
    palestra = await startPalestra({ dataDir });
    client = openClient(palestra.url, { 'x-api-key': apiKey }, 64);
  };
  return {
    /** The running service. */
    palestra: () => palestra,
    client: () => client,
    loaded: () => loaded,
    async open() {
      if (palestra === null) await start();
    },
    /** Loads rollouts until there are so many. Returns what upload-load.mjs prints. */
    async load(rollouts) {
      const result = await loadRollouts(palestra, { from: loaded, count: rollouts - loaded });
      loaded = rollouts;
      return result;
    },
    /** The whole load, settled. */
    async fill() {
      if (loaded >= ROLLOUTS) return;
      await this.load(ROLLOUTS);
      await allSettled(client, loaded);
    },
    /** Ends the service with `end` ('stop' or 'kill') and starts it on the same data. Returns the seconds of both. */
    async restart(end) {
      const { dataDir } = palestra;
      client.close();
      const began = performance.now();
      await palestra[end]();
      const ended = performance.now();
      await start(dataDir);
      return { stopSeconds: (ended - began) / 1000, startSeconds: (performance.now() - ended) / 1000 };
    },
    async close() {
      client?.close();
      await palestra?.stop();
      if (palestra !== null) rmSync(palestra.dataDir, { recursive: true, force: true });
    },
  };
}
