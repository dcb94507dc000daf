// 1 000 tasks as Parquet: `palestra prepare-tasks` against a script that opens one session after the other with the official client, both
// on the same Palestra.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { median } from './support/figures.mjs';
import { root, time } from './support/processes.mjs';

export async function benchExport(palestra, python) {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-bench-export-'));
  const tasks = '1000';
  const prepare = async (...options) => {
    const output = path.join(folder, 'ours.parquet');
    const which = ['--env', 'palestra/echo', '--split', 'train', '--max-tasks', tasks, '--output', output, ...options];
    const command = [path.join(root, 'apps/cli/dist/main.js'), 'prepare-tasks', ...which];
    return (await time(process.execPath, command, palestra.clientEnv)).seconds;
  };
  const onServer = [];
  const bySessions = [];
  try {
    for (let round = 0; round < 3; round += 1) {
      onServer.push(await prepare());
      bySessions.push(await prepare('--concurrency', '32'));
    }
    const script = path.join(root, 'tests/conformance/python/sequential_prepare_tasks.py');
    const theirs = await time(python, [script, 'palestra/echo', 'train', path.join(folder, 'theirs.parquet'), tasks], palestra.clientEnv);
    const row = (name, seconds, target) => ({
      name,
      ours: median(seconds),
      theirs: theirs.seconds,
      unit: 's',
      ratio: theirs.seconds / median(seconds),
      target,
    });
    return [row('export of 1 000 tasks', onServer, 10), row('the same by 32 sessions from here', bySessions, null)];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
