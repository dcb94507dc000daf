import type { Lens, RolloutExportFormat, RolloutExportView } from '@palestra/protocol';
import { setTimeout as sleep } from 'node:timers/promises';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { PalestraClient } from '@palestra/client';
import { aboutRun } from '../named-run.ts';
import { printable, type Printed, printOne } from '../output.ts';
import { startProgress } from '../progress.ts';
import { UsageError, withClient } from '../settings.ts';
import { writeFileAtomically } from '../atomic-write.ts';

/** The poll interval grows with the age of the export, within these bounds. */
const MIN_POLL_MS = 100;
const MAX_POLL_MS = 2_000;

interface ExportOptions extends Printed {
  run?: string;
  query: string;
  format: RolloutExportFormat;
  /** The server checks it. */
  lens: Lens;
  redact?: boolean;
  shardRows?: number;
  out: string;
  keep?: boolean;
}

/** Creates an export on the server, downloads its files, and deletes it from the server. */
export async function exportRollouts(options: ExportOptions): Promise<void> {
  const { run, query, format, lens, redact, shardRows, out, keep } = options;
  const view = await withClient(async (client, signal) => {
    const created = client.rolloutExports.create({ run, query, format, lens, redact, shard_rows: shardRows });
    const { id } = await (run === undefined ? created : aboutRun(run, created));
    try {
      const finished = await waitFor(client, id, signal);
      for (const { name } of finished.files) {
        await writeFileAtomically(fileIn(out, name), await client.rolloutExports.download(id, name), signal);
      }
      return finished;
    } finally {
      // Also after a failure, because only this command knows the export. `GET /v1/exports` lists one that cannot be deleted.
      if (!keep) await client.rolloutExports.delete(id).catch(() => {});
    }
  });
  const others = await othersBeside(
    out,
    view.files.map(({ name }) => name),
  );
  if (others.length > 0)
    process.stderr.write(
      printable(`${out} also has files of another export, which a reader of the folder mixes with these: ${others.join(', ')}`) + '\n',
    );
  const skipped = view.skipped > 0 ? `; skipped ${view.skipped} without model messages` : '';
  const tooLarge =
    view.too_large.length > 0 ? `; left out ${view.too_large.length} with more than 128 MiB of messages (manifest.json)` : '';
  await printOne(options, view, () => {
    process.stdout.write(`${view.written} rows in ${view.shards} files written to ${out}${skipped}${tooLarge}\n`);
  });
}

async function waitFor(client: PalestraClient, id: string, signal: AbortSignal): Promise<RolloutExportView> {
  const progress = startProgress('rows');
  const startedAt = Date.now();
  let counted = 0;
  try {
    for (;;) {
      const view = await client.rolloutExports.get(id);
      if (view.total !== null) progress.total(view.total);
      for (; counted < view.written; counted += 1) progress.step();
      if (view.state === 'complete') return view;
      if (view.state === 'failed') throw new Error(`The export failed: ${view.error ?? 'unknown reason'}`);
      await sleep(Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, (Date.now() - startedAt) / 10)), undefined, { signal });
    }
  } finally {
    progress.stop();
  }
}

/** Shards of other exports beside these files. The names depend on the number of shards, so an export does not replace all of another one. */
async function othersBeside(out: string, names: readonly string[]): Promise<string[]> {
  const others: string[] = [];
  for (const folder of new Set(names.map((name) => path.posix.dirname(name)))) {
    const found = (await readdir(path.join(out, folder))).map((name) => path.posix.join(folder, name));
    others.push(...found.filter((name) => /-\d{5}-of-\d{5}\./.test(name) && !names.includes(name)));
  }
  return others.toSorted();
}

/** The path of a file. The server sends the name, so a path outside of the folder is refused. */
function fileIn(folder: string, name: string): string {
  const file = path.resolve(folder, name);
  if (!file.startsWith(path.resolve(folder) + path.sep)) throw new UsageError(`The server sent a file name outside of the folder: ${name}`);
  return file;
}
