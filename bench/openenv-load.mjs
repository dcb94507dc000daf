// The load client of the OpenEnv bench, a separate process: `sockets` WebSockets with one request in flight on each.
// steps:    a reset, then steps for `seconds`; prints steps per second and latencies.
// sessions: all at once, each with connect, reset, one step, close; prints the number of complete ones.
// idle:     opens all and prints `ready`; at SIGUSR2 a reset on each, then `playing`; at SIGTERM the number of open sockets.
// Usage: openenv-load.mjs '{"kind", "url", "headers", "sockets", "seconds", "action", "answer", "timeoutSeconds"}'
import WebSocket from 'ws';

const { kind, url, headers = {}, sockets, seconds, action, answer = 'observation', timeoutSeconds = 180 } = JSON.parse(process.argv[2]);
const RESET = JSON.stringify({ type: 'reset', data: {} });
const STEP = JSON.stringify({ type: 'step', data: action });
let failures = 0;
let firstFailure = null;
const fail = (why) => {
  failures += 1;
  firstFailure ??= String(why).slice(0, 600);
};
const closed = (code, reason) => new Error(`closed with ${code} ${reason}`);

/** Opens a socket, or rejects. `ask` sends one request and returns its checked reply. */
async function connect() {
  const socket = new WebSocket(url, { headers, perMessageDeflate: false, handshakeTimeout: timeoutSeconds * 1000 });
  let waiting = null;
  socket.on('message', (data) => {
    const reply = JSON.parse(data.toString());
    if (reply.type === answer) waiting?.resolve(reply);
    else waiting?.reject(new Error(data.toString()));
  });
  await new Promise((resolve, reject) => {
    waiting = { resolve, reject };
    socket.on('open', resolve);
    socket.on('error', (error) => waiting.reject(error));
    socket.on('close', (code, reason) => waiting.reject(closed(code, reason)));
  });
  const ask = (request) =>
    new Promise((resolve, reject) => {
      waiting = { resolve, reject };
      socket.send(request);
    });
  return { socket, ask };
}

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];

/** An invalid reply fails the whole round, because only completed steps count. */
async function steps() {
  const open = await Promise.all(Array.from({ length: sockets }, connect));
  if (answer === 'observation') await Promise.all(open.map(({ ask }) => ask(RESET)));
  const latenciesMs = [];
  const started = performance.now();
  const deadline = started + seconds * 1000;
  await Promise.all(
    open.map(async ({ ask }) => {
      for (let before = started; before < deadline;) {
        await ask(STEP);
        const now = performance.now();
        latenciesMs.push(now - before);
        before = now;
      }
    }),
  );
  const elapsed = (performance.now() - started) / 1000;
  for (const { socket } of open) socket.terminate();
  latenciesMs.sort((a, b) => a - b);
  return { stepsPerSecond: latenciesMs.length / elapsed, p50Ms: quantile(latenciesMs, 0.5), p99Ms: quantile(latenciesMs, 0.99) };
}

async function sessions() {
  const tookMs = [];
  const started = performance.now();
  const deadline = AbortSignal.timeout(timeoutSeconds * 1000);
  const one = async () => {
    const { socket, ask } = await connect();
    await ask(RESET);
    await ask(STEP);
    tookMs.push(performance.now() - started);
    socket.send('{"type":"close"}');
    socket.close();
  };
  const late = new Promise((_, reject) =>
    deadline.addEventListener('abort', () => reject(new Error(`not done after ${timeoutSeconds} s`))),
  );
  await Promise.all(Array.from({ length: sockets }, () => Promise.race([one(), late]).catch((error) => fail(error.message))));
  const wallSeconds = (performance.now() - started) / 1000;
  tookMs.sort((a, b) => a - b);
  return { succeeded: tookMs.length, wallSeconds, p99Ms: tookMs.length > 0 ? quantile(tookMs, 0.99) : null };
}

async function idle() {
  const open = [];
  const inTurns = async (work) => {
    const numbers = Array.from({ length: sockets }, (_, number) => number).values();
    const worker = async () => {
      for (const number of numbers) await work(number);
    };
    await Promise.all(Array.from({ length: 64 }, worker));
  };
  const asked = new Promise((resolve) => process.once('SIGTERM', resolve));
  process.once('SIGUSR2', async () => {
    await inTurns((number) => open[number].ask(RESET));
    console.log('playing');
  });
  await inTurns(async () => open.push(await connect()));
  console.log('ready');
  await asked;
  return { open: open.filter(({ socket }) => socket.readyState === WebSocket.OPEN).length };
}

const outcome = await { steps, sessions, idle }[kind]();
console.log(JSON.stringify({ ...outcome, failures, firstFailure }));
process.exit(0);
