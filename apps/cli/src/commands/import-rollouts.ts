import { PalestraApiError, type PalestraClient } from '@palestra/client';
import type { ImportFormat } from '@palestra/protocol';
import { RecordError } from '@palestra/rollouts/import';
import { BatchSender, type Outcome } from '../batch-sender.ts';
import { findImport, type ImportSource } from '../import-source.ts';
import { printable, type Printed, printList } from '../output.ts';
import { type Progress, startProgress } from '../progress.ts';
import { withClient } from '../settings.ts';

interface ImportOptions extends Printed {
  format: ImportFormat | 'auto';
  run?: string;
  scorer?: string;
  dryRun?: boolean;
}

/** The counts of one file. Records are lines or samples; the other counts are events. */
interface Tally {
  file: string;
  format: string;
  records: number;
  events: number;
  accepted: number;
  duplicates: number;
  conflicts: number;
  rejected: number;
  /** Unreadable records. */
  unread: number;
  /** Runs of the rollouts. */
  runs: Set<string>;
}

/** At most this many bad records per file are printed; all are counted. */
const MAX_PRINTED = 20;

/** Prints and skips bad records; the exit status is then 1. */
export async function importRollouts(files: readonly string[], options: ImportOptions): Promise<void> {
  // Before anything is uploaded.
  const sources: ImportSource[] = [];
  for (const file of files) sources.push(await findImport({ file, format: options.format, runName: options.run, scorer: options.scorer }));
  const progress = startProgress('events');
  let tallies: Tally[];
  try {
    tallies = options.dryRun
      ? await importFiles(sources, progress, null)
      : await withClient((client) => importFiles(sources, progress, client));
  } finally {
    progress.stop();
  }
  const rows = tallies.map(({ unread, runs, ...counts }) => ({ ...counts, unreadable: unread, runs: [...runs] }));
  await printList(options, rows, [
    ['file', ({ file }) => file],
    ['format', ({ format }) => format],
    ['records', ({ records }) => records],
    ['events', ({ events }) => events],
    ['new', ({ accepted }) => accepted],
    ['duplicates', ({ duplicates }) => duplicates],
    ['conflicts', ({ conflicts }) => conflicts],
    ['rejected', ({ rejected }) => rejected],
    ['unreadable', ({ unreadable }) => unreadable],
  ]);
  if (options.dryRun) process.stderr.write('Nothing was uploaded.\n');
  if (tallies.some((one) => one.unread + one.rejected > 0)) process.exitCode = 1;
}

async function importFiles(sources: readonly ImportSource[], progress: Progress, client: PalestraClient | null): Promise<Tally[]> {
  const tallies: Tally[] = [];
  for (const source of sources) {
    const earlier = tallies.reduce((sum, { events }) => sum + events, 0);
    tallies.push(await importFile(source, earlier, progress, client));
  }
  if (client) for (const run of new Set(tallies.flatMap(({ runs }) => [...runs]))) await finishRun(client, run);
  return tallies;
}

/** A recording is over: its silence is no alert. */
async function finishRun(client: PalestraClient, run: string): Promise<void> {
  try {
    await client.runs.change(run, { finished: true });
  } catch (error) {
    // None of its events was valid.
    if (!(error instanceof PalestraApiError && error.code === 'run_not_found')) throw error;
  }
}

/** `earlier`: the number of events of the previous files. */
async function importFile(
  { file, format, records }: ImportSource,
  earlier: number,
  progress: Progress,
  client: PalestraClient | null,
): Promise<Tally> {
  const tally: Tally = {
    file,
    format,
    records: 0,
    events: 0,
    accepted: 0,
    duplicates: 0,
    conflicts: 0,
    rejected: 0,
    unread: 0,
    runs: new Set(),
  };
  let printed = 0;
  const reportProblem = (where: string, what: string) => {
    printed += 1;
    if (printed <= MAX_PRINTED) progress.line(printable(`${file}, ${where}: ${what}`));
    else if (printed === MAX_PRINTED + 1) progress.line(`${file}: further problems are only counted`);
  };
  const sender =
    client &&
    new BatchSender(
      (events) => client.rollouts.send(events, { history: true }),
      (outcome) => count(tally, outcome, reportProblem, progress),
    );
  try {
    for await (const record of records()) {
      if ('problem' in record) {
        tally.unread += 1;
        reportProblem(record.where, record.problem);
        continue;
      }
      tally.records += 1;
      tally.events += record.events.length;
      progress.total(earlier + tally.events);
      for (const event of record.events) {
        if (event.eventType === 'rollout') tally.runs.add(event.runName);
        if (sender) await sender.add(record.where, event);
        else progress.step();
      }
    }
  } catch (error) {
    // Records before the error are kept.
    if (!(error instanceof RecordError)) throw error;
    tally.unread += 1;
    reportProblem('the whole file', error.message);
  }
  await sender?.flush();
  return tally;
}

function count(
  tally: Tally,
  { status, where, detail }: Outcome,
  reportProblem: (where: string, what: string) => void,
  progress: Progress,
): void {
  progress.step();
  if (status === 'accepted') tally.accepted += 1;
  else if (status === 'rejected') {
    tally.rejected += 1;
    reportProblem(where, detail ?? 'refused by the server');
  } else {
    tally.duplicates += 1;
    if (status === 'conflict') tally.conflicts += 1;
  }
}
