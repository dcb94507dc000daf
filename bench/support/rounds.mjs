// Episodes against several servers, alternating, so that other load affects all sides.
import path from 'node:path';
import { median } from './figures.mjs';
import { time } from './processes.mjs';

const rounds = Number(process.env.PALESTRA_BENCH_ROUNDS ?? 3);
const seconds = Number(process.env.PALESTRA_BENCH_SECONDS ?? 5);

/** One run of load.mjs or of `script`: `side` is { port, headers, sessions, script }. Throws if a request failed. */
export async function load({ script = 'load.mjs', ...side }, duration) {
  const given = JSON.stringify({ ...side, seconds: duration });
  const { stdout } = await time(process.execPath, [path.join(import.meta.dirname, '..', script), given]);
  const round = JSON.parse(stdout);
  if (round.failures > 0) throw new Error(`${round.failures} requests failed, the first with:\n${round.firstFailure}`);
  return round;
}

/** Medians of the figures of load.mjs by side. */
export async function playRounds(sides) {
  const played = Object.fromEntries(Object.keys(sides).map((name) => [name, []]));
  for (const side of Object.values(sides)) await load(side, 2);
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, side] of Object.entries(sides)) played[name].push(await load(side, seconds));
  }
  const figures = ['callsPerSecond', 'requestsPerSecond', 'p50Ms', 'p99Ms'];
  const medians = (list) => Object.fromEntries(figures.map((key) => [key, median(list.map((round) => round[key]))]));
  return Object.fromEntries(Object.entries(played).map(([name, list]) => [name, medians(list)]));
}
