import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientEnv } from './support/client-env.ts';
import { full } from '../support/full.ts';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { type PythonName, python, run, runScript } from './support/python.ts';

/** Every command of the `orwd` CLI with `-o json`; those of the old SDK with CI_FULL=1. */
const interpreters: PythonName[] = full ? ['v167', 'v112'] : ['v167'];
describe.each(interpreters)('orwd (%s)', (interpreter) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-orwd-'));
  let palestra: SharedPalestra;
  beforeAll(async () => {
    palestra = await sharedPalestra();
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
  });

  const orwd = (...args: string[]) =>
    run(path.join(path.dirname(python(interpreter)), 'orwd'), args, { env: clientEnv(palestra), cwd: folder });
  async function json<T>(...args: string[]): Promise<T> {
    const finished = await orwd(...args, '-o', 'json');
    expect(finished.code, finished.output).toBe(0);
    return JSON.parse(finished.stdout) as T;
  }
  async function text(...args: string[]): Promise<string> {
    const finished = await orwd(...args);
    expect(finished.code, finished.output).toBe(0);
    return finished.output;
  }
  async function refusal(...args: string[]): Promise<string> {
    const finished = await orwd(...args);
    expect(finished.code, finished.output).not.toBe(0);
    return finished.output;
  }
  const ours = (name: string) => `${palestra.namespace}/${name}`;

  test('whoami', async () => {
    expect(JSON.stringify(await json('whoami'))).toContain(palestra.namespace);
  });

  test('create, get, update, list', async () => {
    await text('create', 'first', '--description', 'The first one', '--private');
    expect(await json('get', ours('first'))).toMatchObject({
      name: 'first',
      owner: palestra.namespace,
      description: 'The first one',
      is_private: true,
    });
    expect(await refusal('create', 'first', '--description', 'again')).toContain('exists already');
    await text('update', ours('first'), '--description', 'Renamed', '--name', 'second', '--public');
    expect(await json('get', ours('second'))).toMatchObject({ name: 'second', description: 'Renamed', is_private: false });
    const listed = await json<{ name: string }[]>('list', '--mine');
    expect(listed.map(({ name }) => name)).toEqual(['second']);
    expect(await json('list', '--owner', palestra.namespace, '--search', 'seco', '--limit', '5')).toHaveLength(1);
    expect(await refusal('get', ours('nope'))).toContain('does not exist');
    expect(await refusal('get', `${ours('a')}/b`)).not.toBe('');
  });

  test('upload, files, delete-file', async () => {
    await text('create', 'store', '--description', 'files');
    const source = path.join(folder, 'source');
    mkdirSync(path.join(source, 'inner'), { recursive: true });
    writeFileSync(path.join(source, 'plain.txt'), 'hello');
    writeFileSync(path.join(source, 'with ü space.txt'), 'world');
    writeFileSync(path.join(source, 'inner/data.json'), '{}');
    await text('upload', ours('store'), source);
    expect(await json('files', ours('store'))).toMatchObject({ files: [], folders: ['source'] });
    const inside = await json<{ files: { path: string; size: number }[]; folders: string[] }>(
      'files',
      ours('store'),
      '--prefix',
      'source/',
    );
    expect(inside.files.map((file) => `${file.path} ${file.size}`)).toEqual(['source/plain.txt 5', 'source/with ü space.txt 5']);
    expect(inside.folders).toEqual(['source/inner']);
    await text('upload', ours('store'), path.join(source, 'plain.txt'), '--dest', 'data/');
    await text('delete-file', ours('store'), 'data/plain.txt');
    expect(await json('files', ours('store'), '--prefix', 'data/')).toMatchObject({ files: [], folders: [] });
    await text('delete-file', ours('store'), 'source', '--folder');
    expect(await json('files', ours('store'))).toMatchObject({ files: [], folders: [] });
  });

  test('runs, run, rollouts', async () => {
    await runScript(interpreter, 'rollout_upload.py', ['orwd-run', 'palestra/echo'], clientEnv(palestra));
    const runs = await json<{ id: string; name: string; num_rollouts: number }[]>('runs', '--search', 'orwd-run');
    expect(runs).toMatchObject([{ name: 'orwd-run', num_rollouts: 3 }]);
    expect(await json('run', runs[0]!.id)).toMatchObject({ name: 'orwd-run', num_rollouts: 3 });
    const rollouts = await json<{ rolloutName: string; num_messages: number }[]>('rollouts', runs[0]!.id);
    expect(rollouts.map(({ rolloutName, num_messages }) => `${rolloutName} ${num_messages}`).toSorted()).toEqual([
      'every-type 9',
      'three-hundred 300',
      'wide 1',
    ]);
    expect(await refusal('run', '00000000-0000-4000-8000-000000000000')).toContain('No such run');
  });

  test('GitHub and billing say plainly what is not there', async () => {
    await text('create', 'plain', '--description', 'no link');
    expect(await json('deployments', ours('plain'))).toEqual([]);
    expect(await refusal('link', ours('plain'), 'acme/repository')).not.toContain('Traceback');
    if (interpreter === 'v167') expect(JSON.stringify(await json('usage', '--days', '7', '--daily'))).toContain('totals');
  });

  test('a wrong key is told so', async () => {
    const env = clientEnv(palestra, 'or_not_a_key_of_ours');
    const finished = await run(path.join(path.dirname(python(interpreter)), 'orwd'), ['whoami'], { env });
    expect(finished.code).not.toBe(0);
    expect(finished.output).toContain('Missing or unknown API key');
  });
});
