import {
  addFigures,
  type CurriculumTask,
  type ExportedRollout,
  type ExportedRow,
  FORMATS,
  narrowFile,
  type NarrowRollout,
  type PairOf,
  preferenceFile,
  rolloutFile,
  curriculumFile,
} from '@palestra/exports';
import type { RolloutExportFormat } from '@palestra/protocol';
import type { ExportProgress } from './rollout-export.sql.ts';

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
  return async function* (rows) {
    for await (const piece of files[FORMATS[format].input](rows)) {
      counts.bytes += piece.length;
      yield piece;
    }
  };
}
