// Episodes by `@palestra/client`, or the same requests by undici alone, for client.mjs: create_session, create, five calls, delete,
// delete_session on SESSIONS sessions for SECONDS. Prints the line that load.mjs prints. Usage: client-load.mjs
// '{"kind": "client" | "undici", "port", "sessions", "seconds", "headers": {...}}'
import { randomUUID } from 'node:crypto';
import { PalestraClient } from '@palestra/client';
import { Agent } from 'undici';

const { kind, port, sessions, seconds, headers } = JSON.parse(process.argv[2]);
const origin = `http://127.0.0.1:${port}`;
const environment = headers['X-Deployment'];
const latenciesMs = [];
let episodes = 0;
let firstFailure = null;
let failures = 0;
const deadline = performance.now() + seconds * 1000;

/** Plays one episode; `timed` measures a call. */
const players = {
  client() {
    const client = new PalestraClient({ url: origin, apiKey: headers['X-API-Key'] });
    return async (index, timed) => {
      const session = await client.session({ environment, split: 'train', index });
      for (let call = 0; call < 5; call += 1) {
        const text = `episode ${index} call ${call}`;
        const { blocks } = await timed(() => session.call('echo', { text }));
        if (blocks[0].text !== text) throw new Error(`expected ${text}, got ${blocks[0].text}`);
      }
      await session.close();
    };
  },
  undici() {
    const agent = new Agent({ keepAliveTimeout: 30_000 });
    const send = async (path, sid, body, more) => {
      const answer = await agent.request({
        origin,
        path,
        method: 'POST',
        headers: { ...headers, ...(sid && { 'x-session-id': sid }), ...(body && { 'content-type': 'application/json' }), ...more },
        body,
      });
      const text = await answer.body.text();
      if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode} ${text}`);
      return text;
    };
    return async (index, timed) => {
      const reserved = await send('/create_session', '', '{}', { accept: 'text/event-stream', 'x-palestra-queue': '1' });
      const sid = /^data: (\S+)/m.exec(reserved)[1];
      await send('/create', sid, JSON.stringify({ split: 'train', index }));
      for (let call = 0; call < 5; call += 1) {
        const text = `episode ${index} call ${call}`;
        const body = JSON.stringify({ name: 'echo', input: { text } });
        const answer = await timed(() => send('/call', sid, body, { accept: 'text/event-stream', 'idempotency-key': randomUUID() }));
        const { output } = JSON.parse(/^event: end\r\ndata: (.*)\r$/m.exec(answer)[1]);
        if (output.blocks[0].text !== text) throw new Error(`expected ${text}, got ${output.blocks[0].text}`);
      }
      for (const path of ['/delete', '/delete_session']) await send(path, sid, null);
    };
  },
};
const play = players[kind]();

async function timed(call) {
  const started = performance.now();
  const result = await call();
  latenciesMs.push(performance.now() - started);
  return result;
}

async function playEpisodes(worker) {
  for (let number = 0; performance.now() < deadline; number += 1) {
    await play((worker * 7 + number) % 1000, timed).catch((error) => {
      failures += 1;
      firstFailure ??= String(error);
    });
    episodes += 1;
  }
}

const started = performance.now();
const before = process.cpuUsage();
await Promise.all(Array.from({ length: sessions }, (_, worker) => playEpisodes(worker)));
const elapsed = (performance.now() - started) / 1000;
const { user, system } = process.cpuUsage(before);
latenciesMs.sort((a, b) => a - b);
const quantile = (q) => latenciesMs[Math.min(latenciesMs.length - 1, Math.floor(latenciesMs.length * q))];
console.log(
  JSON.stringify({
    callsPerSecond: latenciesMs.length / elapsed,
    requestsPerSecond: (episodes * 9) / elapsed,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    cpuUsPerCall: (user + system) / latenciesMs.length,
    failures,
    firstFailure,
  }),
);
process.exit();
