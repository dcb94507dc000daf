import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GROUPS, type Sample, upload, uploadOf } from '../support/exported-rollouts.ts';
import { type SharedPalestra, sharedPalestra, startPalestra } from '../support/palestra.ts';
import { clientEnv } from './support/client-env.ts';
import { run, runScript } from './support/python.ts';

/** Exports as their readers see them: DuckDB, pandas with pyarrow, Hugging Face `datasets`; and an export whose server is killed. */
const cli = path.resolve(import.meta.dirname, '../../apps/cli/dist/main.js');
const folder = mkdtempSync(path.join(tmpdir(), 'palestra-rollout-exports-'));
const RUN = 'to be read';
let palestra: SharedPalestra;
let samples: Sample[];

const post = (to: SharedPalestra) => async (events: object[]) => {
  const headers = { 'x-api-key': to.apiKey, 'content-type': 'application/json' };
  const answer = await fetch(`${to.url}/v1/rollouts`, { method: 'POST', headers, body: JSON.stringify({ events }) });
  return { status: answer.status, body: await answer.json() };
};

type Kind = 'parquet' | 'jsonl' | 'hf';
const LENSES = ['canonical', 'skyrl', 'verl', 'trl', 'prime-rl', 'slime', 'tinker', 'rllm'];
/** By the name of their folder. */
const EXPORTS: Record<string, { kind: Kind; options: string[] }> = {
  parquet: { kind: 'parquet', options: ['--format', 'parquet', '--shard-rows', '7'] },
  hf: { kind: 'hf', options: ['--format', 'hf', '--shard-rows', '7'] },
  narrow: { kind: 'parquet', options: ['--format', 'rollouts-parquet'] },
  ...Object.fromEntries(
    LENSES.map((lens) => [`lens-${lens}`, { kind: 'parquet' as const, options: ['--format', 'rollouts-parquet', '--lens', lens] }]),
  ),
  ...Object.fromEntries(
    ['jsonl', 'openai', 'sft', 'preference'].map((format) => [format, { kind: 'jsonl' as const, options: ['--format', format] }]),
  ),
};
/** What the readers saw of each. */
let seenOf: Record<string, any>;

beforeAll(async () => {
  palestra = await sharedPalestra();
  const made = uploadOf(RUN);
  samples = made.samples;
  await upload(post(palestra), made.events);
  const folders = [];
  for (const [name, { kind, options }] of Object.entries(EXPORTS)) folders.push(`${kind}=${await exportTo(name, ...options)}`);
  // One process for all of them: importing the readers takes seconds.
  const seen = (await runScript('v167', 'read_rollouts.py', folders, { HF_HUB_OFFLINE: '1' })) as any[];
  seenOf = Object.fromEntries(Object.keys(EXPORTS).map((name, index) => [name, seen[index]]));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
});

async function exportTo(name: string, ...options: string[]): Promise<string> {
  const out = path.join(folder, name);
  const finished = await run(process.execPath, [cli, 'rollouts', 'export', '--run', RUN, '--out', out, ...options], {
    env: clientEnv(palestra),
  });
  expect(finished.code, finished.output).toBe(0);
  return out;
}

const ids = () => samples.map(({ id }) => id).toSorted();

describe('readers', () => {
  test.each(['parquet', 'hf'])('%s: sharded, zstd, nested messages, the same rows for everybody', (format) => {
    const seen = seenOf[format];
    expect([seen.duckdb.rows, seen.pandas.rows, seen.datasets.rows]).toEqual([20, 20, 20]);
    expect(seen.datasets.ids.toSorted()).toEqual(ids());
    expect(seen.datasets.streamed_equals_whole).toBe(true);
    expect(seen.arrow.codecs).toEqual(['ZSTD']);
    expect(seen.arrow.footer).toMatchObject({ 'palestra.run': RUN, 'palestra.lens': 'canonical' });
    expect(seen.arrow.schema).toMatchObject({ reward: 'double', step: 'int32', step_prov: 'string', received_at: 'timestamp[ms, tz=UTC]' });
    expect(seen.duckdb.columns).toMatchObject({
      task_index: 'BIGINT',
      reward: 'DOUBLE',
      received_at: 'TIMESTAMP WITH TIME ZONE',
      flags: 'VARCHAR[]',
    });
    expect(seen.duckdb.columns.messages).toMatch(/^STRUCT\(.*"?content"? VARCHAR.*\)\[\]$/);
    const first = GROUPS.slice(0, 4).flatMap(({ rewards }) => rewards);
    const scored = first.filter((reward) => reward !== null);
    expect(seen.sql.by_step).toEqual([
      [1, 'reported', first.length, scored.length, scored.reduce((a, b) => a + b, 0) / scored.length],
      [2, 'reported', 4, 3, 0.75],
    ]);
    expect(seen.sql.tools).toEqual([['accuse', 20]]);
    expect(seen.sql.json).toEqual([[0], [1], [2], [3], [4]]);
    expect(seen.datasets.first.messages).toHaveLength(6);
  });

  test('narrow rows only', () => {
    const seen = seenOf['narrow'];
    expect([seen.duckdb.rows, seen.pandas.rows, seen.datasets.rows]).toEqual([20, 20, 20]);
    expect(seen.pandas.columns).not.toContain('messages');
  });

  /** Of the twenty rollouts eight are unscored; the rewards add up to 8.75, nine are above 0, six are exactly 1. */
  test.each([
    ['canonical', { counted: 12, mean: 8.75 / 12, solved: 9, unsolved: 3 }],
    // SkyRL stores 0 for a rollout without any reward.
    ['skyrl', { counted: 20, mean: 8.75 / 20, solved: 9, unsolved: 11 }],
    ['verl', { counted: 20, mean: 8.75 / 20, solved: 0, unsolved: 0 }],
    ['trl', { counted: 12, mean: 8.75 / 12, solved: 0, unsolved: 0 }],
    ['prime-rl', { counted: 20, mean: 8.75 / 20, solved: 6, unsolved: 14 }],
    ['slime', { counted: 20, mean: 8.75 / 20, solved: 6, unsolved: 14 }],
    ['tinker', { counted: 20, mean: 8.75 / 20, solved: 0, unsolved: 0 }],
    ['rllm', { counted: 20, mean: 8.75 / 12, solved: 9, unsolved: 11 }],
  ])('the lens %s as pandas sees it', (lens, expected) => {
    const out = path.join(folder, `lens-${lens}`);
    const { pandas, arrow } = seenOf[`lens-${lens}`];
    expect(pandas.lens).toEqual({ ...expected, mean: expect.closeTo(expected.mean, 12) });
    expect(arrow.schema).toMatchObject({ lens_reward: 'double', lens_success: 'bool', lens_counted: 'bool' });
    expect(arrow.footer).toMatchObject({ 'palestra.lens': lens });
    expect(JSON.parse(readFileSync(path.join(out, 'manifest.json'), 'utf8'))).toMatchObject({ lens, lens_rule: expect.any(String) });
  });

  test.each([
    ['jsonl', 20],
    ['openai', 20],
    ['sft', 20],
    ['preference', 2],
  ])('%s as JSON lines', (format, rows) => {
    const seen = seenOf[format];
    expect([seen.duckdb.rows, seen.pandas.rows, seen.datasets.rows]).toEqual([rows, rows, rows]);
  });

  test('a curriculum is read as the file of prepare_tasks is, and loads where the trainer loads it', async () => {
    const out = await exportTo('curriculum', '--format', 'curriculum');
    const [file] = readdirSync(path.join(out, 'data'));
    const [seen] = (await runScript('v167', 'read_tasks.py', [path.join(out, 'data', file!)], { HF_HUB_OFFLINE: '1' })) as any[];
    expect(seen.columns.slice(0, 5)).toEqual(['prompt', 'env_class', 'env_name', 'split', 'task_index']);
    expect(seen.roles).toEqual([
      ['system', 'user'],
      ['system', 'user'],
    ]);
    expect(seen.rows.map(({ task_index, solve_rate, n }: any) => [task_index, solve_rate, n]).toSorted()).toEqual([
      [0, 0.5, 4],
      [4, 2 / 3, 3],
    ]);
  });

  test('the command line says what the server refuses', async () => {
    const out = path.join(folder, 'refused');
    const refused = await run(process.execPath, [cli, 'rollouts', 'export', '--run', RUN, '--query', 'rewrd:1', '--out', out], {
      env: clientEnv(palestra),
    });
    expect(refused.code).toBe(1);
    expect(refused.output).toBe('palestra: There is no key rewrd:. Did you mean reward:?\n');
  });

  test('nothing is counted beforehand of pairs, and no count is shown', async () => {
    const out = path.join(folder, 'pairs');
    const { output } = await run(process.execPath, [cli, 'rollouts', 'export', '--run', RUN, '--format', 'preference', '--out', out], {
      env: clientEnv(palestra),
    });
    expect(output).toMatch(/^rows: 2$/m);
  });
});

describe('kill -9 in the middle', () => {
  test('the next server goes on after the last finished file; every rollout is there once', async () => {
    const mortal = await startPalestra();
    const database = new pg.Client({ connectionString: mortal.databaseUrl! });
    try {
      await database.connect();
      const made = uploadOf(
        'killed',
        Array.from({ length: 300 }, () => ({ rewards: [0, 1, null, 0.5] })),
      );
      await upload(post(mortal), made.events);
      const headers = { 'x-api-key': mortal.apiKey, 'content-type': 'application/json' };
      const body = JSON.stringify({ run: 'killed', format: 'jsonl', shard_rows: 5 });
      let id = '';
      const files = async () =>
        (await database.query('SELECT files FROM rollout_exports WHERE id = $1', [id])).rows[0].files as { key: string }[];
      let before: { key: string }[] = [];
      // A busy machine may let the export end before it lets us kill its server.
      for (let attempt = 0; attempt === 0 || (attempt < 4 && before.length === 240); attempt += 1) {
        if (attempt > 0) await mortal.restart();
        ({ id } = (await (await fetch(`${mortal.url}/v1/exports`, { method: 'POST', headers, body })).json()) as { id: string });
        while ((await files()).length < 20) await new Promise((resolve) => setTimeout(resolve, 5));
        await mortal.kill();
        before = await files();
      }
      expect(before.length).toBeLessThan(240);
      // The clock is not waited for: nobody has been heard of for long.
      await database.query(`UPDATE rollout_exports SET updated_at = now() - interval '2 minutes' WHERE id = $1`, [id]);
      await mortal.restart();
      let view: any;
      do {
        await new Promise((resolve) => setTimeout(resolve, 100));
        view = await (await fetch(`${mortal.url}/v1/exports/${id}`, { headers })).json();
      } while (['pending', 'running'].includes(view.state));
      expect(view).toMatchObject({ state: 'complete', written: 1_200, shards: 240, figures: { rollouts: 1_200, scored: 900 } });
      expect((await files()).slice(0, before.length).map(({ key }) => key)).toEqual(before.map(({ key }) => key));
      const texts = await Promise.all(
        view.files.filter(({ name }: any) => name.startsWith('data/')).map(async ({ url }: any) => (await fetch(url)).text()),
      );
      const found = texts.flatMap((text) => text.trim().split('\n')).map((line) => JSON.parse(line).rollout_id);
      expect(found).toHaveLength(made.samples.length);
      expect(new Set(found)).toEqual(new Set(made.samples.map(({ id: rollout }) => rollout)));
    } finally {
      await database.end();
      await mortal.stop();
    }
  });
});

test('the card of a folder is what Hugging Face reads', () => {
  const card = readFileSync(path.join(folder, 'hf', 'README.md'), 'utf8');
  expect(card.startsWith('---\n')).toBe(true);
  expect(card).toContain('path: data/train-*.parquet');
  expect(card).toContain('acme/whodunit@7');
  expect(card).toContain('## Lens');
  expect(card).toMatch(/the rollout as canonical counts it: the total; unscored and interrupted rollouts have none/);
});
