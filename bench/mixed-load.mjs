// The load of the mixed bench, a separate process. Each client plays units one after the other: an episode of five calls, its upload in two
// posts of ten messages, and with `reads` one read each of the runs list, the rollout and the environments. With `unitsPerSecond` units start
// at that rate, else as fast as they can. Prints one JSON line with latencies by window. Usage: mixed-load.mjs '{"url", "apiKey",
// "deployments", "clients", "seconds", "windowSeconds", "unitsPerSecond", "reads"}'
import { randomUUID } from 'node:crypto';
import { openClient, wait } from './support/client.mjs';
import { quantile } from './support/figures.mjs';

const { url, apiKey, deployments, clients = 48, seconds, windowSeconds = seconds, unitsPerSecond, reads } = JSON.parse(process.argv[2]);
const CALLS = 5;
const RUNS = 4;
const STEP = 256;
const client = openClient(url, { 'x-api-key': apiKey }, clients * 2);
const windows = Array.from({ length: Math.round(seconds / windowSeconds) }, () => ({
  units: 0,
  calls: [],
  runs: [],
  rollouts: [],
  environments: [],
}));
const started = performance.now();
const elapsed = () => (performance.now() - started) / 1000;
let planned = 0;
let refusals = 0;

/** Adds to the window of this moment. What ends after the last window counts in none. */
function record(what, ms) {
  const window = windows[Math.floor(elapsed() / windowSeconds)];
  if (window === undefined) return;
  if (what === 'units') window.units += 1;
  else window[what].push(ms);
}

async function timed(what, work) {
  const from = performance.now();
  const result = await work();
  record(what, performance.now() - from);
  return result;
}

/** An episode as the official client plays it. Returns its calls. */
async function playEpisode(number) {
  const session = { 'x-deployment': deployments[number % deployments.length] };
  const sid = /event: task_id\r?\ndata: (\S+)/.exec(await client.send('/create_session', '{}', 'POST', session))?.[1];
  session['x-session-id'] = sid;
  const index = number % 1000;
  await client.send('/create', JSON.stringify({ split: 'train', index }), 'POST', session);
  const calls = [];
  for (let at = 0; at < CALLS; at += 1) {
    const input = { text: `episode ${number} call ${at} ${randomUUID()}` };
    const answer = await timed('calls', () => client.send('/echo/call', JSON.stringify({ name: 'echo', input }), 'POST', session));
    if (!answer.includes(input.text)) throw new Error(`the call returned ${answer.slice(0, 300)}`);
    calls.push(input);
  }
  for (const path of ['/delete', '/delete_session']) await client.send(path, '{}', 'POST', session);
  return { index, deployment: session['x-deployment'], calls };
}

async function uploadEpisode(number, { index, deployment, calls }) {
  const id = randomUUID();
  const start = {
    eventType: 'rollout',
    eventId: id,
    timestamp: Date.now(),
    runName: `mixed-${number % RUNS}`,
    rolloutName: `mixed ${number}`,
    environment: deployment,
    split: 'train',
    rollout_info: { task_index: index, current_step: Math.floor(number / RUNS / STEP) },
  };
  const messages = calls.flatMap((input, at) => [
    { type: 'tool_call', name: 'echo', callId: `call_${at}`, content: JSON.stringify(input) },
    { type: 'tool_result', name: 'echo', callId: `call_${at}`, content: input.text, reward: 0.1 },
  ]);
  const events = messages.map((message, at) => ({
    eventType: 'message',
    eventId: randomUUID(),
    timestamp: Date.now(),
    index: at,
    rolloutEventId: id,
    isFinished: at === messages.length - 1,
    metadata: {},
    ...message,
  }));
  refusals += await client.upload(JSON.stringify({ events: [start, ...events.slice(0, CALLS)] }));
  refusals += await client.upload(JSON.stringify({ events: events.slice(CALLS) }));
  return id;
}

async function play() {
  while (elapsed() < seconds) {
    const number = planned;
    planned += 1;
    if (unitsPerSecond) await wait((number / unitsPerSecond - elapsed()) * 1000);
    if (elapsed() >= seconds) return;
    const id = await uploadEpisode(number, await playEpisode(number));
    if (reads) {
      await timed('runs', () => client.get('/v1/runs?limit=20'));
      await timed('rollouts', () => client.get(`/v1/rollouts/${id}`));
      await timed('environments', () => client.get('/v1/environments'));
    }
    record('units');
  }
}

await Promise.all(Array.from({ length: clients }, play));
client.close();
const summary = (times) =>
  times.length === 0 ? null : { count: times.length, p50: quantile(times, 0.5), p95: quantile(times, 0.95), p99: quantile(times, 0.99) };
const lines = windows.map(({ units, ...times }) => ({
  unitsPerSecond: units / windowSeconds,
  ...Object.fromEntries(Object.entries(times).map(([what, list]) => [what, summary(list)])),
}));
console.log(JSON.stringify({ windows: lines, refusals }));
