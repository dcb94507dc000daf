import {
  addFigures,
  type CurriculumTask,
  type ExportedRollout,
  type ExportedRow,
  FORMATS,
  labelFile,
  type LabelledRollout,
  narrowFile,
  type NarrowRollout,
  type PairOf,
  preferenceFile,
  rolloutFile,
  curriculumFile,
} from '@palestra/exports';
import type { RolloutExportFormat } from '@palestra/protocol';
import type { ExportProgress } from './rollout-export.sql.ts';

const PIECE_BYTES = 256 * 1024;

/** Rows and bytes of the current file. */
export interface FileCounts {
  rows: number;
  bytes: number;
}

/**
 * Writes one file. `rows` are of the format's input type. Counts written rows in `progress.figures`, rows that are not in the file in
 * `progress.skipped`, and the file in `counts`.
 */
export function shardWriter(
  format: RolloutExportFormat,
  progress: ExportProgress,
  lineage: Record<string, string>,
  counts: FileCounts,
): (rows: AsyncIterable<unknown>) => AsyncGenerator<Uint8Array> {
  const options = {
    lineage,
    onSkip() {
      progress.skipped += 1;
      counts.rows -= 1;
    },
  };
  const files = {
    rollouts: (rows: AsyncIterable<unknown>) =>
      rolloutFile(
        tap(rows as AsyncIterable<ExportedRollout>, (row) => [row]),
        format,
        options,
      ),
    narrow: (rows: AsyncIterable<unknown>) =>
      narrowFile(
        tap(rows as AsyncIterable<ExportedRow>, (row) => [row]),
        options,
      ),
    pairs: (rows: AsyncIterable<unknown>) =>
      preferenceFile(
        tap(rows as AsyncIterable<PairOf<ExportedRollout>>, ({ chosen, rejected }) => [chosen, rejected]),
        format,
        options,
      ),
    labels: (rows: AsyncIterable<unknown>) =>
      labelFile(
        tap(rows as AsyncIterable<LabelledRollout<ExportedRollout>>, ({ rollout }) => [rollout]),
        format,
        options,
      ),
    tasks: (rows: AsyncIterable<unknown>) => curriculumFile(tap(rows as AsyncIterable<CurriculumTask>, () => [])),
  };
  async function* tap<Row>(rows: AsyncIterable<Row>, rolloutsOf: (row: Row) => NarrowRollout[]): AsyncGenerator<Row> {
    for await (const row of rows) {
      counts.rows += 1;
      for (const rollout of rolloutsOf(row)) addFigures(progress.figures, rollout);
      yield row;
    }
  }
  return (rows) => joined(files[FORMATS[format].input](rows), counts);
}

/** Rows as pieces of `PIECE_BYTES`, because each piece is a write to a disk. */
async function* joined(pieces: AsyncIterable<Uint8Array>, counts: FileCounts): AsyncGenerator<Uint8Array> {
  let open: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    counts.bytes += piece.length;
    open.push(piece);
    bytes += piece.length;
    if (bytes < PIECE_BYTES) continue;
    yield Buffer.concat(open);
    open = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(open);
}
