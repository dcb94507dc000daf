// `@palestra/client`: its rate against undici alone with the same requests, and its memory while it uploads a million messages.
import path from 'node:path';
import { apiKey, freePort, startServer, time } from './support/processes.mjs';
import { atMost, shown } from './support/figures.mjs';
import { playRounds } from './support/rounds.mjs';

const SESSIONS = 128;
const MESSAGES = Number(process.env.PALESTRA_BENCH_MESSAGES ?? 1_000_000);
/** Growth of the memory between a tenth of the upload and its end. */
const FLAT = 1.25;

export async function benchClient(palestra) {
  const headers = { 'X-API-Key': apiKey, 'X-Deployment': 'palestra/echo' };
  const side = (kind) => ({ script: 'client-load.mjs', kind, port: palestra.port, headers, sessions: SESSIONS });
  const { client, undici } = await playRounds({ client: side('client'), undici: side('undici') });
  const row = (name, key, unit, target) => ({
    name,
    ours: client[key],
    theirs: undici[key],
    unit,
    ratio: unit === '/s' ? client[key] / undici[key] : undici[key] / client[key],
    target,
  });
  return [
    row(`tool calls per second by the client and by undici alone, ${SESSIONS} sessions`, 'callsPerSecond', '/s', 0.9),
    row('p50 of a call', 'p50Ms', 'ms', null),
    row('p99 of a call', 'p99Ms', 'ms', null),
  ];
}

/** Against a server that only reads, so that the memory is that of the client. */
export async function benchClientMemory() {
  const port = await freePort();
  const sink = await startServer(process.execPath, [path.join(import.meta.dirname, 'upload-sink.mjs'), String(port)], {}, port);
  try {
    const given = JSON.stringify({ url: sink.url, messages: MESSAGES });
    const { stdout } = await time(process.execPath, ['--expose-gc', path.join(import.meta.dirname, 'client-upload-load.mjs'), given]);
    const { seconds, megabytes } = JSON.parse(stdout);
    return [
      shown('messages per second, 1 kB each', MESSAGES / seconds, '/s'),
      shown('resident memory after a tenth', megabytes[0], 'MB'),
      shown('resident memory, highest', Math.max(...megabytes), 'MB'),
      atMost(FLAT, 'highest memory after a tenth', Math.max(...megabytes) / megabytes[0], 'times'),
    ];
  } finally {
    await sink.stop();
  }
}
