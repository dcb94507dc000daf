// What Palestra costs in front of an unmodified Python ORS server: 16 sessions through us and directly.
import path from 'node:path';
import { apiKey, freePort, startServer } from './support/processes.mjs';
import { playRounds } from './support/rounds.mjs';

const sessions = 16;

export async function benchThrough(palestra, python) {
  const port = await freePort();
  const upstream = await startServer(python, [path.join(import.meta.dirname, 'echo_environment.py'), String(port)], {}, port);
  try {
    const headers = { 'X-API-Key': apiKey, 'X-Deployment': 'through' };
    await register(palestra, upstream.url);
    const { through, direct } = await playRounds({
      through: { port: palestra.port, headers, sessions },
      direct: { port, headers, sessions },
    });
    const moreMs = through.p50Ms - direct.p50Ms;
    const ratio = through.callsPerSecond / direct.callsPerSecond;
    return [
      {
        name: `calls per second through us, ${sessions} sessions`,
        ours: through.callsPerSecond,
        theirs: direct.callsPerSecond,
        unit: '/s',
        ratio,
        target: 0.95,
      },
      {
        name: 'p50 of a call through us',
        ours: through.p50Ms,
        theirs: direct.p50Ms,
        unit: 'ms',
        ratio: direct.p50Ms / through.p50Ms,
        most: { value: moreMs, limit: 1, unit: 'ms more' },
      },
    ];
  } finally {
    await upstream.stop();
  }
}

async function register(palestra, url) {
  const answer = await fetch(`${palestra.url}/v1/environments`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'through', description: '', source: { kind: 'remote', url } }),
  });
  if (!answer.ok) throw new Error(`POST /v1/environments: ${answer.status} ${await answer.text()}`);
}
