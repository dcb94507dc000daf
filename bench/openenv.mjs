// The OpenEnv routes: steps per second over 64 sockets against OpenEnv's own server and a bare echo, OpenEnv's scaling test, and the cost
// of an idle socket. PALESTRA_BENCH_OPENENV_SECONDS (per round), PALESTRA_BENCH_OPENENV_SESSIONS (comma-separated counts),
// PALESTRA_BENCH_OPENENV_IDLE (sockets).
import path from 'node:path';
import { apiKey, discard, freePort, root, startPalestra, startServer } from './support/processes.mjs';
import { fileLimit, findOpenEnv, headers, keepOpen, load, socketUrl, startOpenEnv } from './support/openenv.mjs';
import { median } from './support/figures.mjs';
import { usageOf } from './support/usage.mjs';

const rounds = Number(process.env.PALESTRA_BENCH_ROUNDS ?? 3);
const seconds = Number(process.env.PALESTRA_BENCH_OPENENV_SECONDS ?? process.env.PALESTRA_BENCH_SECONDS ?? 5);
const sessionCounts = (process.env.PALESTRA_BENCH_OPENENV_SESSIONS ?? '1000,4096,10000').split(',').map(Number);
const idleSockets = Number(process.env.PALESTRA_BENCH_OPENENV_IDLE ?? 2_000);
const SOCKETS = 64;
/** Open files of a server beside its sockets. */
const OTHER_FILES = 500;
/** Limit of connections of the real server. */
const REFERENCE_SESSIONS = 4_096;
const MOST_KILOBYTES = 40;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs `work` with OpenEnv's own server, or with null if it is not installed. */
async function withReal(work) {
  const installed = findOpenEnv();
  const real = installed && (await startOpenEnv(installed));
  try {
    return await work(real);
  } finally {
    await real?.stop();
  }
}

/** Steps per second of all sides, alternating. */
export const benchOpenEnv = (palestra) => withReal(async (real) => stepRows(palestra, real, real && (await register(palestra, real.url))));

async function register(palestra, url) {
  const answer = await fetch(`${palestra.url}/v1/environments`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'openenv', description: '', source: { kind: 'openenv', url } }),
  });
  if (!answer.ok) throw new Error(`POST /v1/environments: ${answer.status} ${await answer.text()}`);
  const { owner, name } = await answer.json();
  return `${owner}/${name}`;
}

/** Alternating, so that other load affects all sides; medians of the rounds. */
async function stepRows(palestra, real, throughUs) {
  const port = await freePort();
  const echo = await startServer(process.execPath, [path.join(root, 'bench/openenv-echo.mjs'), String(port)], {}, port, '/');
  const action = { wait_seconds: 0 };
  const sides = {
    ours: { url: socketUrl(palestra, 'palestra/bench'), headers },
    echo: { url: `ws://127.0.0.1:${port}`, answer: 'step' },
    ...(real && { through: { url: socketUrl(palestra, throughUs), headers }, real: { url: `ws://127.0.0.1:${real.port}/ws` } }),
  };
  const play = (side, duration) => load({ kind: 'steps', ...side, action, sockets: SOCKETS, seconds: duration });
  const played = Object.fromEntries(Object.keys(sides).map((name) => [name, []]));
  try {
    for (const side of Object.values(sides)) await play(side, 2);
    for (let round = 0; round < rounds; round += 1)
      for (const [name, side] of Object.entries(sides)) played[name].push(await play(side, seconds));
  } finally {
    await echo.stop();
  }
  const of = (name, key) => median(played[name].map((round) => round[key]));
  const row = (name, ours, theirs, target) => {
    const [mine, other] = [of(ours, 'stepsPerSecond'), of(theirs, 'stepsPerSecond')];
    return {
      name: `OpenEnv steps per second, ${SOCKETS} sockets, ${name}`,
      ours: mine,
      theirs: other,
      unit: '/s',
      ratio: mine / other,
      target,
    };
  };
  const slower = (name, key, ours, theirs) => {
    const [mine, other] = [of(ours, key), of(theirs, key)];
    return { name, ours: mine, theirs: other, unit: 'ms', ratio: other / mine, target: null };
  };
  return [
    ...(real ? [row("against OpenEnv's own server", 'ours', 'real', 2)] : []),
    row('against a bare ws echo with JSON', 'ours', 'echo', null),
    ...(real
      ? [
          row('through us against direct', 'through', 'real', 0.9),
          slower('p50 of a step', 'p50Ms', 'ours', 'real'),
          slower('p99 of a step', 'p99Ms', 'ours', 'real'),
          slower('p99 of a step, through us', 'p99Ms', 'through', 'real'),
        ]
      : []),
  ];
}

/** OpenEnv's published scaling test: N concurrent sessions, each with connect, reset, one step of a second, close. */
export const benchOpenEnvScaling = (palestra) => withReal((real) => scalingRows(palestra, real));

async function scalingRows(palestra, real) {
  const limit = fileLimit();
  const rows = [];
  for (const sockets of sessionCounts) {
    if (limit < sockets + OTHER_FILES)
      throw new Error(`${sockets} sessions need ${sockets + OTHER_FILES} open files; ulimit -n is ${limit}`);
    const run = (side) => load({ kind: 'sessions', ...side, sockets, action: { wait_seconds: 1 } });
    const ours = await run({ url: socketUrl(palestra, 'palestra/bench'), headers });
    const theirs = real && sockets <= REFERENCE_SESSIONS ? await run({ url: `ws://127.0.0.1:${real.port}/ws` }) : null;
    if (ours.failures > 0) console.error(`${ours.failures} of ${sockets} sessions failed, the first with: ${ours.firstFailure}`);
    const percent = ({ succeeded }) => (succeeded / sockets) * 100;
    const name = `OpenEnv's scaling test, ${sockets} sessions at once, one second each`;
    const lost = 100 - percent(ours);
    rows.push(
      {
        name: `${name}: succeeded`,
        ours: percent(ours),
        theirs: theirs ? percent(theirs) : undefined,
        unit: '%',
        target: null,
        most: { value: lost, limit: 0, unit: '% lost' },
      },
      { name: `${name}: wall (ulimit -n ${limit})`, ours: ours.wallSeconds, theirs: theirs?.wallSeconds, unit: 's', target: null },
    );
  }
  return rows;
}

/**
 * Growth of the process of the service by this many idle connected sockets: first without, then with an episode each. Uses a new service,
 * because free memory of an old one would hide the growth.
 */
export async function benchOpenEnvIdle() {
  const palestra = await startPalestra();
  try {
    const side = { url: socketUrl(palestra, 'palestra/bench'), headers };
    // Warms up, so that one-time costs do not count.
    await load({ kind: 'steps', ...side, sockets: SOCKETS, action: { wait_seconds: 0 }, seconds: 2 });
    const settledBytes = async () => {
      await wait(5_000);
      return usageOf(palestra.pid).service.rssBytes;
    };
    const before = await settledBytes();
    const open = await keepOpen({ ...side, sockets: idleSockets });
    const connected = await settledBytes();
    await open.reset();
    const playing = await settledBytes();
    const stayed = await open.end();
    if (stayed !== idleSockets) throw new Error(`only ${stayed} of ${idleSockets} idle sockets stayed open`);
    const rowOf = (bytes, name) => {
      const kilobytes = (bytes - before) / idleSockets / 1000;
      const row = { name: `memory of an idle OpenEnv socket ${name}, of ${idleSockets}`, ours: kilobytes, unit: 'kB', target: null };
      // The garbage of the warm-up was freed meanwhile and hides the growth, so there is no figure.
      if (kilobytes <= 0) return { ...row, name: `${row.name} (not measurable: the service shrank; take more sockets)` };
      return { ...row, most: { value: kilobytes, limit: MOST_KILOBYTES, unit: 'kB' } };
    };
    return [rowOf(connected, 'without an episode'), rowOf(playing, 'with an open episode')];
  } finally {
    await discard(palestra);
  }
}
