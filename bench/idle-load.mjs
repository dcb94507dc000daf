// Opens SESSIONS sessions with one connection each and pings each of them every PERIOD seconds, as the official client does. Prints
// `ready` when all are open and pinged, and one JSON line with the failures at SIGTERM. Usage: idle-load.mjs '{"port", "sessions",
// "periodSeconds", "headers": {...}}'
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';

const { port, sessions, periodSeconds, headers } = JSON.parse(process.argv[2]);
const shared = Object.entries({ Host: `127.0.0.1:${port}`, ...headers })
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');
let [pings, failures] = [0, 0];
let firstFailure = null;

const request = (path, sid, body) =>
  `POST ${path} HTTP/1.1\r\n${shared}X-Session-ID: ${sid}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

function fail(why) {
  failures += 1;
  firstFailure ??= why;
}

async function open(number) {
  const sid = randomUUID();
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  socket.setEncoding('latin1');
  socket.on('error', (error) => fail(error.message));
  socket.on('close', () => fail('the server closed the connection'));
  socket.write(request('/create', sid, JSON.stringify({ split: 'train', index: number % 1000 })));
  const [answer] = await once(socket, 'data');
  if (!answer.startsWith('HTTP/1.1 200')) fail(answer.slice(0, 500));
  socket.on('data', (text) => {
    if (text.startsWith('HTTP/1.1 200')) pings += 1;
    else fail(text.slice(0, 500));
  });
  const ping = () => socket.write(request('/ping', sid, ''));
  ping();
  // Spread over the period, like clients that started at different times.
  setTimeout(() => setInterval(ping, periodSeconds * 1000), Math.random() * periodSeconds * 1000);
}

const numbers = Array.from({ length: sessions }, (_, number) => number).values();
await Promise.all(
  Array.from({ length: 64 }, async () => {
    for (const number of numbers) await open(number);
  }),
);
console.log('ready');
process.once('SIGTERM', () => {
  console.log(JSON.stringify({ pings, failures, firstFailure }));
  process.exit(0);
});
