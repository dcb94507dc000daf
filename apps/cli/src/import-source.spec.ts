import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findImport } from './import-source.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'palestra-import-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const find = (file: string) => findImport({ file, format: 'auto', runName: 'run', scorer: undefined });
async function write(name: string, content: string | Uint8Array): Promise<string> {
  const file = path.join(folder, name);
  await writeFile(file, content);
  return file;
}

describe('a file to import', () => {
  it.each<[name: string, content: string | Uint8Array, told: RegExp]>([
    [
      'table.csv',
      'a,b\n1,2\n',
      /unknown format\. Choose one with --format: openai, inspect, verifiers, palestra\. The file begins with: a,b$/,
    ],
    ['long.txt', 'x'.repeat(500), /The file begins with: x{80}\.\.\.$/],
    ['empty.jsonl', '', /is empty\.$/],
    ['packed.jsonl.gz', gzipSync('{"messages":[]}'), /is compressed\. Unpack it first/],
  ])('%s is refused with what to do', async (name, content, told) => {
    await expect(find(await write(name, content))).rejects.toThrow(told);
  });

  it('that is a folder, a pipe or missing is named', async () => {
    const pipe = path.join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    for (const file of [folder, pipe]) await expect(find(file)).rejects.toThrow(`${file} is not a file.`);
    await expect(find(path.join(folder, 'nowhere'))).rejects.toThrow(/^Cannot read .*nowhere/);
  });

  it('may be a JSON log with a byte order mark', async () => {
    const sample = { id: 1, epoch: 1, messages: [{ role: 'user', content: 'hi' }], scores: { match: { value: 'C' } } };
    const log = { version: 2, status: 'success', eval: { task: 't', scorers: [{ name: 'match' }] }, samples: [sample] };
    const { format, records } = await find(await write('log.json', `\uFEFF${JSON.stringify(log)}`));
    const read = [];
    for await (const record of records()) read.push(record);
    expect({ format, read }).toMatchObject({ format: 'inspect', read: [{ events: [{}, { reward: 1 }] }] });
  });

  it('of verifiers has the environment of a metadata file with NaN', async () => {
    await write('metadata.json', '{"env_id": "adding", "avg_reward": NaN}');
    const row = { prompt: [{ role: 'user', content: 'q' }], completion: [{ role: 'assistant', content: 'a' }], example_id: 0, reward: 1 };
    const { records } = await find(await write('results.jsonl', JSON.stringify(row)));
    for await (const record of records()) expect(record).toMatchObject({ events: [{ environment: 'adding' }, {}, {}] });
  });
});
