// 10 000 idle sessions that ping every 10 s on separate connections: memory and CPU of the process of the service, and as a second figure
// with the child processes of its environments, without PostgreSQL.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { apiKey } from './support/processes.mjs';
import { usageOf } from './support/usage.mjs';

const sessions = Number(process.env.PALESTRA_BENCH_IDLE_SESSIONS ?? 10_000);
const periodSeconds = 10;
const MEASURED_MS = 30_000;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function benchIdle(palestra) {
  const headers = { 'X-API-Key': apiKey, 'X-Deployment': 'palestra/echo' };
  const given = JSON.stringify({ port: palestra.port, sessions, periodSeconds, headers });
  const load = spawn(process.execPath, [path.join(import.meta.dirname, 'idle-load.mjs'), given], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = [];
  load.stdout.on('data', (data) => lines.push(...data.toString().trim().split('\n')));
  while (!lines.includes('ready')) {
    if (load.exitCode !== null) throw new Error('idle-load.mjs ended early');
    await wait(100);
  }
  await wait(periodSeconds * 1000);
  const before = usageOf(palestra.pid);
  await wait(MEASURED_MS);
  const after = usageOf(palestra.pid);
  const ended = once(load, 'close');
  load.kill('SIGTERM');
  await ended;
  const { pings, failures, firstFailure } = JSON.parse(lines.at(-1));
  if (failures > 0) throw new Error(`${failures} of ${pings} pings failed, the first with:\n${firstFailure}`);
  if (pings < (sessions * MEASURED_MS) / 1000 / periodSeconds) throw new Error(`only ${pings} pings came through`);
  const figures = (name, which) => {
    const cores = (after[which].cpuSeconds - before[which].cpuSeconds) / (MEASURED_MS / 1000);
    const gigabytes = after[which].rssBytes / 2 ** 30;
    const limit = (value, most, unit) => (which === 'service' ? { value, limit: most, unit } : undefined);
    return [
      { name: `memory of ${sessions} idle sessions, ${name}`, ours: gigabytes, unit: 'GB', target: null, most: limit(gigabytes, 1, 'GB') },
      { name: `CPU of ${sessions} idle sessions, ${name}`, ours: cores, unit: 'cores', target: null, most: limit(cores, 0.5, 'cores') },
    ];
  };
  return [...figures('service', 'service'), ...figures('with environments', 'all')];
}
