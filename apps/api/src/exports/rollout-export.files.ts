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

/** Rows and bytes of the file that is being written. */
export interface Counted {
  rows: number;
  bytes: number;
}

/**
 * Writes one file of rows that are what the format takes. Counts as it goes: what went in into `progress.figures`, rows that are not in
 * the file into `progress.skipped`, the file itself into `counted`.
 */
export function shardWriter(
  format: RolloutExportFormat,
  progress: ExportProgress,
  lineage: Record<string, string>,
  counted: Counted,
): (rows: AsyncIterable<unknown>) => AsyncGenerator<Uint8Array> {
  const options = {
    lineage,
    onSkip() {
      progress.skipped += 1;
      counted.rows -= 1;
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
      counted.rows += 1;
      for (const rollout of rolloutsOf(row)) addFigures(progress.figures, rollout);
      yield row;
    }
  }
  return async function* (rows) {
    for await (const piece of files[FORMATS[format].input](rows)) {
      counted.bytes += piece.length;
      yield piece;
    }
  };
}
