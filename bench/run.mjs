// `npm run bench`: measures both sides of every figure in one run and prints ratios. PALESTRA_BENCH_ROUNDS, PALESTRA_BENCH_SECONDS:
// length; PALESTRA_BENCH_PROFILE: a folder for a CPU profile of the service.
import { cpus, loadavg, totalmem } from 'node:os';
import { benchDiscovery } from './discovery.mjs';
import { benchExport } from './export.mjs';
import { benchFlat } from './flat.mjs';
import { benchIdle } from './idle.mjs';
import { benchIngest } from './ingest.mjs';
import { benchLightning } from './lightning.mjs';
import { benchOpenEnv, benchOpenEnvIdle, benchOpenEnvScaling } from './openenv.mjs';
import { benchPages } from './pages.mjs';
import { benchRolloutExport } from './rollout-export.mjs';
import { benchSessions } from './sessions.mjs';
import { benchStore } from './store.mjs';
import { benchStored } from './stored.mjs';
import { findPython, startPalestra } from './support/processes.mjs';
import { benchThrough } from './through.mjs';

const benches = {
  sessions: benchSessions,
  through: benchThrough,
  openenv: benchOpenEnv,
  'openenv-scaling': benchOpenEnvScaling,
  'openenv-idle': benchOpenEnvIdle,
  discovery: benchDiscovery,
  export: benchExport,
  ingest: benchIngest,
  lightning: benchLightning,
  'rollout-export': benchRolloutExport,
  store: benchStore,
  flat: benchFlat,
  idle: benchIdle,
  stored: benchStored,
  pages: benchPages,
};
const wanted = process.argv.slice(2);
const python = findPython();
const palestra = await startPalestra();
const rows = [];
try {
  for (const [name, bench] of Object.entries(benches)) {
    if (wanted.length === 0 || wanted.includes(name)) rows.push(...(await bench(palestra, python)));
  }
} finally {
  await palestra.stop();
}

const number = (value) => (value >= 100 ? value.toFixed(0) : value.toFixed(2));
function verdict({ ratio, target, most }) {
  if (most) return `${most.value <= most.limit ? 'ok' : 'MISSED'} (${number(most.value)} of at most ${most.limit} ${most.unit})`;
  return target === null ? '' : `${ratio >= target ? 'ok' : 'MISSED'} (≥ ${target}×)`;
}
const lines = rows.map((row) => [
  row.name,
  `${number(row.ours)} ${row.unit}`,
  row.theirs === undefined ? '' : `${number(row.theirs)} ${row.unit}`,
  row.ratio === undefined ? '' : `${row.ratio.toFixed(2)}×`,
  verdict(row),
]);
const table = [['', 'Palestra', 'reference', 'ratio', 'target'], ...lines];
const widths = table[0].map((_, column) => Math.max(...table.map((line) => line[column].length)));
for (const line of table)
  console.log(
    line
      .map((cell, column) => cell.padEnd(widths[column]))
      .join('  ')
      .trimEnd(),
  );
console.log(
  `${cpus()[0].model.trim()}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}, load ${number(loadavg()[1])}`,
);
