import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect } from 'vitest';
import type { SharedPalestra } from '../../support/palestra.ts';
import { clientEnv } from '../support/client-env.ts';
import { run } from '../support/python.ts';
import { drive } from './contract.ts';

/** Files of tasks that the command line writes, and what loaders of trainers make of them. */

export interface Loaded {
  count: number;
  first: Record<string, any>;
  tasks: { owner: string; env: string; split: string; index: number; key: string; version: number | null }[];
}

const cli = path.resolve(import.meta.dirname, '../../../apps/cli/dist/main.js');
const folder = mkdtempSync(path.join(tmpdir(), 'palestra-tasks-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes three tasks of palestra/math in a format and returns `format=file` for the program. */
export async function prepare(palestra: SharedPalestra, format: string, ending: string, ...options: string[]): Promise<string> {
  const file = path.join(folder, `${format}.${ending}`);
  const args = ['prepare-tasks', '--env', 'palestra/math', '--format', format, '--max-tasks', '3', '--out', file, ...options];
  const finished = await run(process.execPath, [cli, ...args], { env: clientEnv(palestra) });
  expect(finished.code, finished.output).toBe(0);
  return `${format}=${file}`;
}

export const load = (palestra: SharedPalestra, python: string, files: string[]) =>
  drive<Record<string, Loaded>>(palestra, {
    python,
    program: 'prepare_tasks.py',
    args: files,
    run: 'none',
    env: { HF_HUB_OFFLINE: '1', HF_DATASETS_CACHE: path.join(folder, 'cache') },
  });

/** Every row leads back to its task. */
export function assertTasks({ count, tasks }: Loaded): void {
  expect(count).toBe(3);
  expect(tasks).toMatchObject(
    [0, 1, 2].map((index) => ({ owner: 'palestra', env: 'math', split: 'train', index, version: expect.any(Number) })),
  );
  expect(new Set(tasks.map(({ key }) => key)).size).toBe(3);
  for (const { key } of tasks) expect(key).toMatch(/^[0-9a-f]{64}$/);
}
