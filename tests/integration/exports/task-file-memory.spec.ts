import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/** 100 000 tasks of two kilobytes are 200 MB. With a heap of 96 MB Node ends the process if rows are gathered. */
const HEAP_MB = 96;
const TASKS = 100_000;
const script = path.join(import.meta.dirname, 'task-file-memory.mjs');

test.each([
  ['verl', 'parquet'],
  ['nemo-gym', 'jsonl'],
])('100 000 tasks, filtered and shuffled, are written in constant memory: %s as %s', { timeout: 240_000 }, async (format, file) => {
  const args = [`--max-old-space-size=${HEAP_MB}`, script, format, file, String(TASKS)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const written = JSON.parse(stdout) as { rows: number; total: number; bytes: number; peakRssMb: number };
  expect(written).toMatchObject({ rows: TASKS * 0.9, total: TASKS * 0.9 });
  console.info(`${format} as ${file}: ${Math.round(written.bytes / 1e6)} MB written, at most ${written.peakRssMb} MB in memory`);
});
