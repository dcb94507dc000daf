import { type Lens, ROLLOUT_EXPORT_FORMATS, type RolloutExportFormat, type RolloutExportView } from '@palestra/protocol';
import { setTimeout as sleep } from 'node:timers/promises';
import path from 'node:path';
import type { PalestraClient } from '@palestra/client';
import { Command, Option } from 'commander';
import { startProgress } from '../output.ts';
import { UsageError, withClient } from '../settings.ts';
import { writeFileAtomically } from '../atomic-write.ts';

/** Between two looks at the export; grows with its age, within these bounds. */
const MIN_POLL_MS = 100;
const MAX_POLL_MS = 2_000;

interface ExportOptions {
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

export function exportRolloutsCommand(positive: (text: string) => number): Command {
  return new Command('export')
    .description('write rollouts as a dataset with its lineage')
    .option('--run <name or id>', 'one run (without: all)')
    .option('--query <query>', 'as in the Explorer', '')
    .addOption(new Option('--format <format>').choices([...ROLLOUT_EXPORT_FORMATS]).default('parquet'))
    .option('--lens <lens>', 'trainer whose reading of a rollout is in the lens_* columns', 'canonical')
    .option('--redact', 'replace what looks like a credential')
    .option('--shard-rows <count>', 'rows of a file at most', positive)
    .option('--keep', 'leave the export on the server, too')
    .requiredOption('--out <folder>')
    .action(exportRollouts);
}

/** Has the server write the export, brings its files into the folder, and has the server forget it. */
async function exportRollouts(options: ExportOptions): Promise<void> {
  const { run, query, format, lens, redact, shardRows, out, keep } = options;
  const view = await withClient(async (client, signal) => {
    const { id } = await client.rolloutExports.create({ run, query, format, lens, redact, shard_rows: shardRows });
    try {
      const finished = await waitFor(client, id, signal);
      for (const { name } of finished.files) {
        await writeFileAtomically(placeOf(out, name), await client.rolloutExports.download(id, name), signal);
      }
      return finished;
    } finally {
      // Also after a failure: nobody else knows of it. One that cannot be erased now is in `GET /v1/exports`.
      if (!keep) await client.rolloutExports.delete(id).catch(() => {});
    }
  });
  const skipped = view.skipped > 0 ? `; ${view.skipped} had nothing to learn from` : '';
  process.stdout.write(`${view.written} rows in ${view.shards} files written to ${out}${skipped}\n`);
}

async function waitFor(client: PalestraClient, id: string, signal: AbortSignal): Promise<RolloutExportView> {
  const progress = startProgress('rows');
  const startedAt = Date.now();
  let told = 0;
  try {
    for (;;) {
      const view = await client.rolloutExports.get(id);
      if (view.total !== null) progress.total(view.total);
      for (; told < view.written; told += 1) progress.step();
      if (view.state === 'complete') return view;
      if (view.state === 'failed') throw new Error(`the export failed: ${view.error ?? 'no reason given'}`);
      await sleep(Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, (Date.now() - startedAt) / 10)), undefined, { signal });
    }
  } finally {
    progress.stop();
  }
}

/** Names come from the server: none leads out of the folder. */
function placeOf(folder: string, name: string): string {
  const place = path.resolve(folder, name);
  if (!place.startsWith(path.resolve(folder) + path.sep)) throw new UsageError(`the server named a file outside of the folder: ${name}`);
  return place;
}
