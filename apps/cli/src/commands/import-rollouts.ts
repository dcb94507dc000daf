import { Command, Option } from 'commander';
import type { PalestraClient } from '@palestra/client';
import { IMPORT_FORMATS, type ImportFormat, RecordError } from '@palestra/rollouts/import';
import { BatchSender, type Outcome } from '../batch-sender.ts';
import { openImport } from '../import-source.ts';
import { printable, printTable, type Progress, startProgress } from '../output.ts';
import { withClient } from '../settings.ts';

interface ImportOptions {
  format: ImportFormat | 'auto';
  run?: string;
  scorer?: string;
  dryRun?: boolean;
}

/** What came of one file. Records are lines or samples; the other figures are events. */
interface Tally {
  file: string;
  format: string;
  records: number;
  events: number;
  accepted: number;
  duplicates: number;
  conflicts: number;
  rejected: number;
  /** Records that could not be read. */
  unread: number;
}

/** Bad records are told one by one up to here, and all are counted. */
const MAX_TOLD = 20;

export function importRolloutsCommand(): Command {
  return new Command('import')
    .description('upload rollouts that other tools recorded; again changes nothing')
    .argument('<files...>')
    .addOption(new Option('--format <format>', 'of the files').choices(['auto', ...IMPORT_FORMATS]).default('auto'))
    .option('--run <name>', 'run that they are put into (our own format: without it into their own)')
    .option(
      '--scorer <name>',
      'Inspect: the score that is the reward, or NAME.KEY of a score with several values (without: the first of the task)',
    )
    .option('--dry-run', 'read the files and send nothing')
    .action((files: string[], options: ImportOptions) => importRollouts(files, options));
}

/** A bad record is told and left out; the exit status is 1 then. */
async function importRollouts(files: readonly string[], options: ImportOptions): Promise<void> {
  const progress = startProgress('events');
  let tallies: Tally[];
  try {
    tallies = options.dryRun
      ? await importFiles(files, options, progress, null)
      : await withClient((client) => importFiles(files, options, progress, client));
  } finally {
    progress.stop();
  }
  printTable(
    ['file', 'format', 'records', 'events', 'new', 'there already', 'conflicts', 'rejected', 'unreadable'],
    tallies.map((one) => [
      one.file,
      one.format,
      one.records,
      one.events,
      one.accepted,
      one.duplicates,
      one.conflicts,
      one.rejected,
      one.unread,
    ]),
  );
  if (options.dryRun) process.stdout.write('Nothing was sent.\n');
  if (tallies.some((one) => one.unread + one.rejected > 0)) process.exitCode = 1;
}

async function importFiles(
  files: readonly string[],
  options: ImportOptions,
  progress: Progress,
  client: PalestraClient | null,
): Promise<Tally[]> {
  const tallies: Tally[] = [];
  for (const file of files) {
    const earlier = tallies.reduce((sum, { events }) => sum + events, 0);
    tallies.push(await importFile(file, earlier, options, progress, client));
  }
  return tallies;
}

/** `earlier`: events of the files before. */
async function importFile(
  file: string,
  earlier: number,
  options: ImportOptions,
  progress: Progress,
  client: PalestraClient | null,
): Promise<Tally> {
  const { format, records } = await openImport({ file, format: options.format, runName: options.run, scorer: options.scorer });
  const tally: Tally = { file, format, records: 0, events: 0, accepted: 0, duplicates: 0, conflicts: 0, rejected: 0, unread: 0 };
  let told = 0;
  const complain = (where: string, what: string) => {
    told += 1;
    if (told <= MAX_TOLD) progress.line(printable(`${file}, ${where}: ${what}`));
    else if (told === MAX_TOLD + 1) progress.line(`${file}: further ones are only counted`);
  };
  const sender =
    client &&
    new BatchSender(
      (events) => client.rollouts.send(events, { history: true }),
      (outcome) => count(tally, outcome, complain, progress),
    );
  try {
    for await (const record of records) {
      if ('problem' in record) {
        tally.unread += 1;
        complain(record.where, record.problem);
        continue;
      }
      tally.records += 1;
      tally.events += record.events.length;
      progress.total(earlier + tally.events);
      for (const event of record.events) {
        if (sender) await sender.add(record.where, event);
        else progress.step();
      }
    }
  } catch (error) {
    // What was read until then is kept.
    if (!(error instanceof RecordError)) throw error;
    tally.unread += 1;
    complain('the whole file', error.message);
  }
  await sender?.flush();
  return tally;
}

function count(
  tally: Tally,
  { status, where, detail }: Outcome,
  complain: (where: string, what: string) => void,
  progress: Progress,
): void {
  progress.step();
  if (status === 'accepted') tally.accepted += 1;
  else if (status === 'rejected') {
    tally.rejected += 1;
    complain(where, detail ?? 'refused by the server');
  } else {
    tally.duplicates += 1;
    if (status === 'conflict') tally.conflicts += 1;
  }
}
