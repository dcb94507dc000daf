// The load generator of the session bench, a separate process with raw sockets, so that it uses little of the machine. Plays episodes as
// the official client does (create_session, create, five calls, delete, delete_session) on SESSIONS sockets for SECONDS and prints one
// JSON line. The path names the environment, because the reference redirects a bare path, at one round trip per call. Usage: load.mjs
// '{"port", "sessions", "seconds", "headers": {...}}'
import { connect } from 'node:net';

const { port, sessions, seconds, headers } = JSON.parse(process.argv[2]);
const shared = Object.entries({ Host: `127.0.0.1:${port}`, ...headers })
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');
const latenciesMs = [];
let episodes = 0;
let failures = 0;
let firstFailure = null;
const deadline = performance.now() + seconds * 1000;

/** One keep-alive connection with one request at a time. */
function openConnection() {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let received = '';
  let settle = null;
  const complete = () => {
    const head = received.indexOf('\r\n\r\n');
    if (head < 0) return false;
    const length = /\r\ncontent-length: *(\d+)/i.exec(received.slice(0, head + 2));
    return length ? received.length >= head + 4 + Number(length[1]) : received.endsWith('\r\n0\r\n\r\n');
  };
  socket.setEncoding('latin1');
  socket.on('data', (chunk) => {
    received += chunk;
    if (settle && complete()) {
      const answer = received;
      received = '';
      settle.resolve(answer);
    }
  });
  const fail = (error) => settle?.reject(error ?? new Error('the server closed the connection'));
  socket.on('error', fail);
  socket.on('close', () => fail());
  return {
    send: (path, sid, body, accept) =>
      new Promise((resolve, reject) => {
        settle = { resolve, reject };
        socket.write(
          `POST ${path} HTTP/1.1\r\n${shared}${sid && `X-Session-ID: ${sid}\r\n`}Accept: ${accept}\r\n` +
            `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
        );
      }),
    close: () => socket.destroy(),
  };
}

function check(answer, expected) {
  if (answer.startsWith('HTTP/1.1 200') && answer.includes(expected)) return;
  failures += 1;
  firstFailure ??= answer.slice(0, 600);
}

async function playEpisodes(worker) {
  const connection = openConnection();
  for (let number = 0; performance.now() < deadline; number += 1) {
    const reserved = await connection.send('/create_session', '', '{}', 'text/event-stream');
    const sid = /^data: (\S+)/m.exec(reserved)?.[1] ?? '';
    check(reserved, 'event: task_id');
    const index = (worker * 7 + number) % 1000;
    check(await connection.send('/create', sid, JSON.stringify({ split: 'train', index }), 'application/json'), sid);
    for (let call = 0; call < 5; call += 1) {
      const text = `episode ${number} call ${call}`;
      const started = performance.now();
      const answer = await connection.send('/echo/call', sid, JSON.stringify({ name: 'echo', input: { text } }), 'text/event-stream');
      latenciesMs.push(performance.now() - started);
      check(answer, text);
    }
    for (const path of ['/delete', '/delete_session']) check(await connection.send(path, sid, '', 'application/json'), sid);
    episodes += 1;
  }
  connection.close();
}

const started = performance.now();
await Promise.all(Array.from({ length: sessions }, (_, worker) => playEpisodes(worker)));
const elapsed = (performance.now() - started) / 1000;
latenciesMs.sort((a, b) => a - b);
const quantile = (q) => latenciesMs[Math.min(latenciesMs.length - 1, Math.floor(latenciesMs.length * q))];
console.log(
  JSON.stringify({
    callsPerSecond: latenciesMs.length / elapsed,
    requestsPerSecond: (episodes * 9) / elapsed,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    episodes,
    failures,
    firstFailure,
  }),
);
