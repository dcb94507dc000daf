// Trainers that play, upload and read at the same time: units per second, latencies of calls and reads, with and without readers, and the
// CPU of each process. `soak` plays half of the highest rate for long: PALESTRA_BENCH_SOAK_MINUTES, default 60.
// PALESTRA_BENCH_MIXED_SECONDS: length of the mixed load, default 60 with readers and 60 without.
import path from 'node:path';
import { atLeast, atMost, shown } from './support/figures.mjs';
import { apiKey, freePort, root, startServer, time } from './support/processes.mjs';
import { coresBetween, usageOf } from './support/usage.mjs';

const SECONDS = Number(process.env.PALESTRA_BENCH_MIXED_SECONDS ?? 60);
const SOAK_MINUTES = Number(process.env.PALESTRA_BENCH_SOAK_MINUTES ?? 60);
const WARMING_SECONDS = 5;
const WINDOWS = 6;
const CLIENTS = 48;
const FLAT = 1.5;
const NAME = 'mixed';

/** Runs `work` with a function that plays the load; half of the episodes run on an ORS server by its URL. */
async function withLoad(store, work) {
  const port = await freePort();
  const server = await startServer(process.execPath, [path.join(root, 'bench/echo-server.mjs'), String(port)], {}, port);
  const client = store.client();
  const { url, pid } = store.palestra();
  try {
    const owner = (await client.get('/v1/me')).body.org.name;
    // The bench may have run on this store before, against another port.
    await client.send(`/v1/environments/${owner}/${NAME}`, undefined, 'DELETE').catch((error) => {
      if (!/: 404 /.test(error.message)) throw error;
    });
    await client.send('/v1/environments', JSON.stringify({ name: NAME, description: '', source: { kind: 'remote', url: server.url } }));
    const play = async (options) => {
      const given = { url, apiKey, deployments: ['palestra/echo', `${owner}/${NAME}`], clients: CLIENTS, ...options };
      const before = usageOf(pid);
      const { stdout, seconds } = await time(process.execPath, [path.join(root, 'bench/mixed-load.mjs'), JSON.stringify(given)]);
      return { ...JSON.parse(stdout), cores: coresBetween(before, usageOf(pid), seconds) };
    };
    await play({ seconds: WARMING_SECONDS, reads: true });
    return await work(play);
  } finally {
    await server.stop();
  }
}

const rowsOf = (name, { p50, p95, p99 }, { p95: most95, p99: most99 } = {}) => [
  shown(`${name}, p50`, p50, 'ms'),
  most95 ? atMost(most95, `${name}, p95`, p95, 'ms') : shown(`${name}, p95`, p95, 'ms'),
  most99 ? atMost(most99, `${name}, p99`, p99, 'ms') : shown(`${name}, p99`, p99, 'ms'),
];
const coreRows = (name, { service, worker, postgres }) => [
  shown(`${name}: CPU of the API`, service, 'cores'),
  shown(`${name}: CPU of its worker`, worker, 'cores'),
  shown(`${name}: CPU of PostgreSQL`, postgres, 'cores'),
];

export const benchMixed = (store) =>
  withLoad(store, async (play) => {
    const watched = await play({ seconds: SECONDS, reads: true });
    // The same rate without readers, so that both have the same calls and uploads.
    const [{ unitsPerSecond, calls, runs, rollouts, environments }] = watched.windows;
    const unwatched = await play({ seconds: SECONDS, reads: false, unitsPerSecond });
    const [alone] = unwatched.windows;
    return [
      atLeast(40, `units per second, ${CLIENTS} clients`, unitsPerSecond, 'units/s'),
      ...rowsOf('tool call', calls, { p99: 100 }),
      ...rowsOf('GET /v1/runs', runs, { p95: 100 }),
      ...rowsOf('GET /v1/rollouts/{id}', rollouts),
      ...rowsOf('GET /v1/environments', environments),
      ...coreRows('with readers', watched.cores),
      shown('uploads that were refused and sent again', watched.refusals + unwatched.refusals, ''),
      shown('without readers, the same rate: units per second', alone.unitsPerSecond, 'units/s'),
      ...rowsOf('without readers, the same rate: tool call', alone.calls),
      atMost(FLAT, 'p99 of tool calls, with readers against without', calls.p99 / alone.calls.p99, 'times'),
      ...coreRows('without readers', unwatched.cores),
    ];
  });

export const benchSoak = (store) =>
  withLoad(store, async (play) => {
    const [{ unitsPerSecond }] = (await play({ seconds: SECONDS, reads: true })).windows;
    const seconds = SOAK_MINUTES * 60;
    const windowSeconds = seconds / WINDOWS;
    const memory = [];
    const timer = setInterval(() => memory.push(usageOf(store.palestra().pid)), windowSeconds * 1000);
    const { windows, refusals, cores } = await play({ seconds, windowSeconds, reads: true, unitsPerSecond: unitsPerSecond / 2 });
    clearInterval(timer);
    const megabytes = (at, part) => memory.at(at)[part].rssBytes / 1e6;
    const growth = (what) => windows.at(-1)[what].p99 / windows[0][what].p99;
    return [
      shown('highest rate before the soak', unitsPerSecond, 'units/s'),
      ...windows.flatMap(({ unitsPerSecond: rate, calls, runs }, at) => [
        shown(`window ${at + 1} of ${WINDOWS}: units per second`, rate, 'units/s'),
        shown(`window ${at + 1} of ${WINDOWS}: tool call, p99`, calls.p99, 'ms'),
        shown(`window ${at + 1} of ${WINDOWS}: GET /v1/runs, p95`, runs.p95, 'ms'),
      ]),
      atMost(FLAT, 'p99 of tool calls, last window against first', growth('calls'), 'times'),
      atMost(FLAT, 'p99 of GET /v1/runs, last window against first', growth('runs'), 'times'),
      ...['service', 'worker', 'all'].flatMap((part) => [
        shown(`memory of ${part}, first window`, megabytes(0, part), 'MB'),
        shown(`memory of ${part}, last window`, megabytes(-1, part), 'MB'),
      ]),
      atMost(1.25, 'memory of all but PostgreSQL, last window against first', megabytes(-1, 'all') / megabytes(0, 'all'), 'times'),
      shown('uploads that were refused and sent again', refusals, ''),
      ...coreRows('soak', cores),
    ];
  });
