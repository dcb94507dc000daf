// Exports of the loaded rollouts with their messages, from the request to the finished files, and the memory of the service meanwhile.
import { wait } from './support/client.mjs';
import { atLeast, atMost, shown } from './support/figures.mjs';
import { RUNS } from './support/store.mjs';
import { sampleMemory } from './support/usage.mjs';

const FORMATS = ['jsonl', 'parquet', 'rollouts-parquet'];
const LEAST_ROWS_PER_SECOND = 5_000;
const CHECK_MS = 50;

async function exportRun(store, format) {
  const client = store.client();
  const memory = sampleMemory(store.palestra().pid, 200);
  try {
    const started = performance.now();
    const { id } = JSON.parse(await client.send('/v1/exports', JSON.stringify({ run: RUNS[0], format })));
    for (;;) {
      const { body } = await client.get(`/v1/exports/${id}`);
      if (body.state === 'failed') throw new Error(`the export failed: ${body.error}`);
      if (body.state === 'complete') {
        const seconds = (performance.now() - started) / 1000;
        await client.send(`/v1/exports/${id}`, undefined, 'DELETE');
        return { seconds, rows: body.written, bytes: body.bytes, megabytes: memory.megabytes };
      }
      await wait(CHECK_MS);
    }
  } finally {
    memory.end();
  }
}

export async function benchExports(store) {
  await store.fill();
  const expected = Math.ceil(store.loaded() / RUNS.length);
  const rows = [];
  for (const format of FORMATS) {
    const { seconds, rows: written, bytes, megabytes } = await exportRun(store, format);
    if (written !== expected) throw new Error(`the export as ${format} has ${written} rows of ${expected}`);
    const growth = Math.max(...megabytes) - megabytes[0];
    rows.push(
      atLeast(LEAST_ROWS_PER_SECOND, `${format}, ${written} rollouts`, written / seconds, 'rows/s'),
      shown(`${format}: bytes of a row`, bytes / written, 'B'),
      atMost(500, `${format}: growth of the memory of API and worker`, Math.max(0, growth), 'MB'),
    );
  }
  return rows;
}
