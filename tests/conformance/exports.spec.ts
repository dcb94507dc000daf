import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientEnv } from './support/client-env.ts';
import { addRemote, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { run, runScript, startUpstream, type Upstream } from './support/python.ts';

/** The Parquet that trainers read: by pyarrow, by `datasets`, and equal to what the trainers' own script writes. */
interface Report {
  columns: string[];
  rows: { prompt: string; env_class: string; env_name: string; split: string; task_index: number }[];
  roles: string[][];
  schema?: [string, string, boolean][];
  compression?: string[];
  arrow_equals_datasets?: boolean;
}

/** SHA-256 of the two prompts that SkyRL's script wrote for the recorded tasks (docs/reference/skyrl.md#task-export). */
const recordedPrompts = [
  'c6d45384a13eb955404efd24753148eaf3354c8d7eebbdb824cb9bf125ec87ca',
  'b3d206f7b342f97c30aec35558394bfa78ab148a11c5c6fba63cd254c070ba4e',
];
const cli = path.resolve(import.meta.dirname, '../../apps/cli/dist/main.js');

describe('palestra prepare-tasks', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-exports-'));
  let palestra: SharedPalestra;
  let upstream: Upstream;
  let math: string;

  beforeAll(async () => {
    palestra = await sharedPalestra();
    upstream = await startUpstream({ interpreter: 'v112', module: 'recorded_environments', classes: ['MathEnv', 'OtherEnv'] });
    math = await addRemote(palestra, 'math', upstream.url);
  });
  afterAll(async () => {
    await upstream?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const prepare = (...args: string[]) => run(process.execPath, [cli, 'prepare-tasks', ...args], { env: clientEnv(palestra) });
  /** One process for several files: importing `datasets` takes seconds. */
  const reports = (...files: string[]) => runScript('v167', 'read_tasks.py', files, { HF_HUB_OFFLINE: '1' }) as Promise<Report[]>;

  test('columns, order, types, codec and prompts are those of SkyRL’s script', async () => {
    const output = path.join(folder, 'math.parquet');
    const finished = await prepare('--env', math, '--split', 'train', '--output', output);
    expect(finished.code, finished.output).toBe(0);
    const [seen] = (await reports(output)) as [Report];
    expect(seen.schema).toEqual([
      ['prompt', 'string', true],
      ['env_class', 'string', true],
      ['env_name', 'string', true],
      ['split', 'string', true],
      ['task_index', 'int64', true],
    ]);
    expect(seen.compression).toEqual(['SNAPPY']);
    expect(seen.arrow_equals_datasets).toBe(true);
    expect(seen.rows).toEqual(
      recordedPrompts.map((prompt, index) => ({ prompt, env_class: 'openreward', env_name: math, split: 'train', task_index: index })),
    );
    expect(seen.roles).toEqual([
      ['system', 'user'],
      ['system', 'user'],
    ]);
  });

  test('two environments follow each other, and JSONL carries the same rows', async () => {
    const parquet = path.join(folder, 'both.parquet');
    const jsonl = path.join(folder, 'both.jsonl');
    for (const output of [parquet, jsonl]) {
      const finished = await prepare(
        '--env',
        'palestra/whodunit',
        '--env',
        math,
        '--split',
        'train',
        '--max-tasks',
        '5',
        '--output',
        output,
      );
      expect(finished.code, finished.output).toBe(0);
    }
    const [fromParquet, fromJsonl] = (await reports(parquet, jsonl)) as [Report, Report];
    expect(fromParquet.rows.map(({ env_name, task_index }) => [env_name, task_index])).toEqual([
      ...[0, 1, 2, 3, 4].map((index) => ['palestra/whodunit', index]),
      ...[0, 1].map((index) => [math, index]),
    ]);
    expect(fromJsonl.columns).toEqual(fromParquet.columns);
    expect(fromJsonl.rows).toEqual(fromParquet.rows);
  });

  test('the rows equal those of a sequential script over the official client', async () => {
    const ours = path.join(folder, 'ours.parquet');
    const theirs = path.join(folder, 'theirs.parquet');
    const bySessions = path.join(folder, 'by-sessions.parquet');
    const ctf = ['--env', 'palestra/ctf', '--split', 'train', '--max-tasks', '20', '--output'];
    for (const finished of [await prepare(...ctf, ours), await prepare(...ctf, bySessions, '--concurrency', '8')]) {
      expect(finished.code, finished.output).toBe(0);
    }
    const script = path.resolve(import.meta.dirname, 'python/sequential_prepare_tasks.py');
    const sequential = await run(process.env['PALESTRA_PYTHON_V167']!, [script, 'palestra/ctf', 'train', theirs, '20'], {
      env: clientEnv(palestra),
    });
    expect(sequential.code, sequential.output).toBe(0);
    const [left, right, third] = (await reports(ours, theirs, bySessions)) as [Report, Report, Report];
    expect(left.rows).toHaveLength(20);
    expect(left.rows).toEqual(right.rows);
    expect(third.rows).toEqual(right.rows);
  });

  test('a task that fails is reported, counted, and makes the exit status non-zero', async () => {
    const broken = await startUpstream({
      interpreter: 'v112',
      module: 'recorded_environments',
      classes: ['BrokenEnv'],
    });
    try {
      const name = await addRemote(palestra, 'broken', broken.url);
      const outputs = ['broken.parquet', 'broken-by-sessions.parquet'].map((file) => path.join(folder, file));
      for (const [index, ways] of [[], ['--concurrency', '4']].entries()) {
        const output = outputs[index]!;
        const finished = await prepare('--env', name, '--env', math, '--split', 'train', '--output', output, ...ways);
        expect(finished.code).not.toBe(0);
        expect(finished.output).toContain('setup exploded');
        expect(finished.output).toMatch(/2 .*failed|failed.* 2/);
      }
      expect((await reports(...outputs)).map(({ rows }) => rows.length)).toEqual([2, 2]);
    } finally {
      await broken.stop();
    }
  });
});
