// `npm run bench`: both sides of every figure in one run on this machine, as ratios.
// PALESTRA_BENCH_ROUNDS, PALESTRA_BENCH_SECONDS: length; PALESTRA_BENCH_PROFILE: a folder for a CPU profile of the service.
import { cpus, totalmem } from 'node:os';
import { benchExport } from './export.mjs';
import { benchIngest } from './ingest.mjs';
import { benchSessions } from './sessions.mjs';
import { findPython, startPalestra } from './support/processes.mjs';

const benches = { sessions: benchSessions, export: benchExport, ingest: benchIngest };
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
const lines = rows.map(({ name, ours, theirs, unit, ratio, target }) => [
  name,
  `${number(ours)} ${unit}`,
  `${number(theirs)} ${unit}`,
  `${ratio.toFixed(2)}×`,
  target === null ? '' : `${ratio >= target ? 'ok' : 'MISSED'} (≥ ${target}×)`,
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
console.log(`${cpus()[0].model.trim()}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}`);
