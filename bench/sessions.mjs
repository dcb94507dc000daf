// ORS episodes at 128 sessions: Palestra with authentication and ledger, against the SDK's own Python server, same echo.
import path from 'node:path';
import { apiKey, freePort, startServer, time } from './support/processes.mjs';

const rounds = Number(process.env.PALESTRA_BENCH_ROUNDS ?? 3);
const seconds = Number(process.env.PALESTRA_BENCH_SECONDS ?? 8);
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

async function load(port, headers, duration) {
  const given = JSON.stringify({ port, sessions: 128, seconds: duration, headers });
  const { stdout } = await time(process.execPath, [path.join(import.meta.dirname, 'load.mjs'), given]);
  const round = JSON.parse(stdout);
  if (round.failures > 0) throw new Error(`${round.failures} requests failed, the first with:\n${round.firstFailure}`);
  return round;
}

/** Rounds alternate, so that whatever else the machine does falls on both sides. */
export async function benchSessions(palestra, python) {
  const port = await freePort();
  const reference = await startServer(python, [path.join(import.meta.dirname, 'echo_environment.py'), String(port)], {}, port);
  const sides = {
    palestra: { port: palestra.port, headers: { 'X-API-Key': apiKey, 'X-Deployment': 'palestra/echo' }, rounds: [] },
    reference: { port, headers: { 'X-API-Key': apiKey, 'X-Deployment': 'palestra/echo' }, rounds: [] },
  };
  try {
    for (const side of Object.values(sides)) await load(side.port, side.headers, 3);
    for (let round = 0; round < rounds; round += 1) {
      for (const side of Object.values(sides)) side.rounds.push(await load(side.port, side.headers, seconds));
    }
  } finally {
    await reference.stop();
  }
  const figure = (side, key) => median(side.rounds.map((round) => round[key]));
  const row = (name, key, unit, better, target) => {
    const [ours, theirs] = [figure(sides.palestra, key), figure(sides.reference, key)];
    return { name, ours, theirs, unit, ratio: better === 'higher' ? ours / theirs : theirs / ours, target };
  };
  return [
    row('tool calls per second, 128 sessions', 'callsPerSecond', '/s', 'higher', 2),
    row('p50 of a call', 'p50Ms', 'ms', 'lower', null),
    row('p99 of a call', 'p99Ms', 'ms', 'lower', 2),
  ];
}
