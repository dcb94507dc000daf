// `npm run bench -- NAME...`: runs benches against the built service over its sockets and prints a table each. `npm run bench -- store` runs
// those of the rollout store in sequence, on one service that is filled once. Without a name it runs all but the long ones.
// --json FILE: writes the figures for a later comparison. PALESTRA_BENCH_ROUNDS, PALESTRA_BENCH_SECONDS: length of the rounds of comparisons;
// PALESTRA_BENCH_ROLLOUTS: size of the store; the others are described in the benches. PALESTRA_BENCH_PROFILE: a folder for a CPU profile.
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { benchClient, benchClientMemory } from './client.mjs';
import { benchDiscovery } from './discovery.mjs';
import { benchDisk } from './disk.mjs';
import { benchExport } from './export.mjs';
import { benchExports } from './exports.mjs';
import { benchHostingScale } from './hosting-scale.mjs';
import { benchHosting } from './hosting.mjs';
import { benchIdle } from './idle.mjs';
import { benchIngest } from './ingest.mjs';
import { benchLarge } from './large.mjs';
import { benchLightning } from './lightning.mjs';
import { benchMixed, benchSoak } from './mixed.mjs';
import { benchOpenEnv, benchOpenEnvIdle, benchOpenEnvScaling } from './openenv.mjs';
import { benchPages } from './pages.mjs';
import { benchPython } from './python.mjs';
import { benchRestart } from './restart.mjs';
import { benchSearch } from './search.mjs';
import { benchSessions } from './sessions.mjs';
import { findPython } from './support/processes.mjs';
import { openStore, ROLLOUTS } from './support/store.mjs';
import { benchThrough } from './through.mjs';
import { benchUploads } from './uploads.mjs';

const store = openStore();
const onPalestra = (bench) => () => bench(store.palestra());
const withPython = (bench) => () => bench(store.palestra(), findPython());
const onStore = (bench) => () => bench(store);

/** In the order in which they run on the shared service: those that measure a new store first, those that delete last. */
const benches = {
  sessions: [withPython(benchSessions), "episodes of the ORS client, alternating with the SDK's server and a bare route of Nest"],
  through: [withPython(benchThrough), "episodes on the SDK's server through Palestra, alternating with the same directly"],
  client: [onPalestra(benchClient), 'episodes by @palestra/client, alternating with the same requests by undici alone'],
  'client-memory': [benchClientMemory, 'a million messages recorded by @palestra/client'],
  python: [() => benchPython(findPython()), 'messages by the recorder of the Python package, alternating with a loop of httpx'],
  openenv: [onPalestra(benchOpenEnv), "steps over 64 sockets, alternating with OpenEnv's own server and a bare echo"],
  'openenv-scaling': [onPalestra(benchOpenEnvScaling), 'sessions of one step that all open at once'],
  'openenv-idle': [onPalestra(benchOpenEnvIdle), 'resident memory of a service before and with idle sockets'],
  discovery: [onPalestra(benchDiscovery), 'create_session and delete_session, one after the other'],
  hosting: [benchHosting, 'environments in containers on a separate service, calls alternating with the same server by its URL'],
  export: [withPython(benchExport), 'tasks as Parquet by the CLI, against a script with the official client'],
  lightning: [onPalestra(benchLightning), 'the workload of the gateway of agent-lightning, alternating with that gateway'],
  ingest: [benchIngest, 'posts over HTTP, alternating with one INSERT per batch into a separate PostgreSQL'],
  'hosting-scale': [benchHostingScale, 'the reconciler on a simulated cluster, with its PostgreSQL on one core'],
  uploads: [onStore(benchUploads), `${ROLLOUTS} rollouts of 3 messages, 25 a post, 32 connections, while someone reads a run`],
  exports: [onStore(benchExports), 'POST /v1/exports until its files are complete'],
  mixed: [onStore(benchMixed), '48 clients: an episode of 5 calls, its upload in 2 posts, with readers 3 reads'],
  search: [onStore(benchSearch), 'GET /v1/runs/{run}/search and /v1/search, one after the other'],
  restart: [
    onStore(benchRestart),
    'a signal until the process has ended; the start until /health/ready is 200; the first read of each kind',
  ],
  disk: [onStore(benchDisk), 'the catalogue of PostgreSQL and the files of the object store, divided by all rollouts'],
  large: [onPalestra(benchLarge), 'rollouts of 400 messages of 1 kB, one a post, 16 connections'],
  idle: [onPalestra(benchIdle), 'sessions on a connection each that ping every 10 s'],
  pages: [onPalestra(benchPages), 'Chromium on a separate service'],
  soak: [onStore(benchSoak), 'the mixed load at half of its highest rate'],
};
const STORE = ['ingest', 'uploads', 'exports', 'mixed', 'search', 'restart', 'disk'];
const LONG = ['large', 'soak'];

const { values, positionals } = parseArgs({ allowPositionals: true, options: { json: { type: 'string' } } });
const wanted = new Set(positionals.flatMap((name) => (name === 'store' ? STORE : [name])));
const unknown = [...wanted].filter((name) => !Object.hasOwn(benches, name));
if (unknown.length > 0) {
  console.error(`Unknown bench ${unknown.join(', ')}. There are: store, ${Object.keys(benches).join(', ')}`);
  process.exit(2);
}
if (wanted.size === 0) for (const name of Object.keys(benches)) if (!LONG.includes(name)) wanted.add(name);

const number = (value) => (value >= 100 ? value.toFixed(0) : value.toFixed(value < 1 ? 3 : 2));
const verdict = (kept, bound, { limit, unit }) => `${kept ? 'ok' : 'MISSED'} (${bound} ${number(limit)} ${unit})`;
function goal({ ratio, target, most, least }) {
  if (most) return verdict(most.value <= most.limit, '≤', most);
  if (least) return verdict(least.value >= least.limit, '≥', least);
  return target ? verdict(ratio >= target, '≥', { limit: target, unit: '×' }) : '';
}

function print(name, how, seconds, rows) {
  const lines = rows.map((row) => [
    row.name,
    `${number(row.ours)} ${row.unit}`.trim(),
    row.theirs === undefined ? '' : `${number(row.theirs)} ${row.unit}`,
    row.ratio === undefined ? '' : `${row.ratio.toFixed(2)}×`,
    goal(row),
  ]);
  const table = [['', 'Palestra', 'reference', 'ratio', 'goal'], ...lines];
  const widths = table[0].map((_, column) => Math.max(...table.map((line) => line[column].length)));
  console.log(`\n${name}: ${how} (${seconds.toFixed(0)} s)`);
  const pad = (line) => line.map((cell, column) => cell.padEnd(widths[column])).join('  ');
  for (const line of table) console.log(pad(line).trimEnd());
}

const machine = `${cpus()[0].model.trim()}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}`;
const results = [];
try {
  await store.open();
  for (const [name, [bench, how]] of Object.entries(benches)) {
    if (!wanted.has(name)) continue;
    const [started, load] = [performance.now(), loadavg()[0]];
    const rows = await bench();
    const seconds = (performance.now() - started) / 1000;
    results.push({ name, how, seconds, load, rows });
    print(name, how, seconds, rows);
    // After each bench, so that a bench that fails does not lose the others.
    if (values.json) writeFileSync(values.json, `${JSON.stringify({ machine, rollouts: ROLLOUTS, results }, null, 1)}\n`);
  }
} finally {
  await store.close();
}
console.log(`\n${machine}; load of the machine before each: ${results.map(({ name, load }) => `${name} ${number(load)}`).join(', ')}`);
