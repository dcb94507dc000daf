// ORS episodes with 128 sessions: Palestra with authentication and ledger against the SDK's own Python server with the same echo, and
// against a route of Nest on Fastify without work.
import path from 'node:path';
import { apiKey, freePort, startServer } from './support/processes.mjs';
import { shown } from './support/figures.mjs';
import { load, playRounds } from './support/rounds.mjs';
import { coresBetween, usageOf } from './support/usage.mjs';

const headers = { 'X-API-Key': apiKey, 'X-Deployment': 'palestra/echo' };
const sessions = 128;
const CPU_SECONDS = 10;

/** Microseconds of processor time of one tool call with its share of opening and closing. */
async function cpuOfCall(palestra) {
  const [before, from] = [usageOf(palestra.pid), performance.now()];
  const { callsPerSecond } = await load({ port: palestra.port, headers, sessions }, CPU_SECONDS);
  const seconds = (performance.now() - from) / 1000;
  const { service, postgres } = coresBetween(before, usageOf(palestra.pid), seconds);
  const ofCall = (cores) => (cores * seconds * 1e6) / (callsPerSecond * CPU_SECONDS);
  return [
    shown('CPU of the API for a tool call, with its share of the episode', ofCall(service), 'µs'),
    shown('CPU of PostgreSQL for the same', ofCall(postgres), 'µs'),
  ];
}

export async function benchSessions(palestra, python) {
  const [port, barePort] = [await freePort(), await freePort()];
  const reference = await startServer(python, [path.join(import.meta.dirname, 'echo_environment.py'), String(port)], {}, port);
  let bare = null;
  try {
    bare = await startServer(process.execPath, [path.join(import.meta.dirname, 'bare-nest.mjs'), String(barePort)], {}, barePort);
    const played = await playRounds({
      palestra: { port: palestra.port, headers, sessions },
      reference: { port, headers, sessions },
      bare: { port: barePort, headers, sessions },
    });
    const [ours, theirs] = [played.palestra, played.reference];
    const more = (name, key, other, target) => ({
      name,
      ours: ours[key],
      theirs: other[key],
      unit: '/s',
      ratio: ours[key] / other[key],
      target,
    });
    const less = (name, key, target) => ({
      name,
      ours: ours[key],
      theirs: theirs[key],
      unit: 'ms',
      ratio: theirs[key] / ours[key],
      target,
    });
    return [
      more(`tool calls per second, ${sessions} sessions`, 'callsPerSecond', theirs, 4),
      less('p50 of a call', 'p50Ms', null),
      less('p99 of a call', 'p99Ms', 5),
      more('tool calls against requests of bare Nest', 'callsPerSecond', { callsPerSecond: played.bare.requestsPerSecond }, 0.6),
      more('all requests against those of bare Nest', 'requestsPerSecond', played.bare, null),
      ...(await cpuOfCall(palestra)),
    ];
  } finally {
    await Promise.all([reference.stop(), bare?.stop()]);
  }
}
