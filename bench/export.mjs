// 1 000 tasks as Parquet: `palestra prepare-tasks` against a script that opens one session after the other with the official
// client, both on the same Palestra.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { root, time } from './support/processes.mjs';

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

export async function benchExport(palestra, python) {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-bench-export-'));
  const tasks = '1000';
  const ours = [];
  try {
    const prepare = () =>
      time(
        process.execPath,
        [
          path.join(root, 'apps/cli/dist/main.js'),
          'prepare-tasks',
          '--env',
          'palestra/echo',
          '--split',
          'train',
          '--max-tasks',
          tasks,
          '--output',
          path.join(folder, 'ours.parquet'),
        ],
        palestra.clientEnv,
      );
    for (let round = 0; round < 3; round += 1) ours.push((await prepare()).seconds);
    const script = path.join(root, 'tests/conformance/python/sequential_prepare_tasks.py');
    const theirs = await time(python, [script, 'palestra/echo', 'train', path.join(folder, 'theirs.parquet'), tasks], palestra.clientEnv);
    return [
      {
        name: 'export of 1 000 tasks',
        ours: median(ours),
        theirs: theirs.seconds,
        unit: 's',
        ratio: theirs.seconds / median(ours),
        target: 10,
      },
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
