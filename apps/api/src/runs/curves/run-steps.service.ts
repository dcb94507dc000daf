import { Injectable } from '@nestjs/common';
import { PHASES, type RunStepsQuery } from '@palestra/protocol';
import { codeOf } from '../../store/vocabulary-codes.ts';
import { mainPhase } from './main-phase.ts';
import { StepFiguresService } from '../../store/figures/step-figures.service.ts';
import { isWindow, type StepRow } from '../../store/figures/step-figures.sql.ts';

/** Counts by step, from rollups. Counts of several steps add up to one column. */
@Injectable()
export class RunStepsService {
  constructor(private readonly figures: StepFiguresService) {}

  async steps(runSeq: number, { max, ...selection }: RunStepsQuery) {
    const read = await this.figures.steps({ runSeq, ...selection });
    const main = mainPhase(read.rows, selection.phase);
    const { phase } = main;
    const windows = main.rows.length === 0 ? await this.figures.windows({ runSeq, ...selection }) : [];
    const arrived = windows.filter((row) => row.phase === codeOf(PHASES, phase));
    const rows = arrived.length > 0 ? arrived : main.rows;
    const columns = columnsOf(rows, max);
    const sums = (of: (row: StepRow) => number) => columns.map((column) => column.reduce((sum, row) => sum + of(row), 0));
    return {
      phase,
      from: columns.map(([first]) => (isWindow(first!) ? first.window.from : first!.step)),
      to: columns.map((column) => lastOf(column.at(-1)!)),
      rollouts: sums((row) => row.rollouts),
      scored: sums((row) => row.scored),
      errors: sums((row) => row.errors),
      finished: sums((row) => row.finished),
      groups: sums((row) => row.figures.groups),
      incomplete_groups: sums((row) => row.figures.incomplete_groups),
      gaps: sums((row) => row.figures.gaps),
      stops: stopsOf(rows).map((stop) => ({ stop, counts: sums((row) => row.figures.stops[stop] ?? 0) })),
    };
  }
}

const lastOf = (row: StepRow): number => (isWindow(row) ? row.window.to : row.step);

/** Divides the rows into at most `max` columns. A step has a row for each variant of a chosen environment; they stay together. */
function columnsOf(rows: readonly StepRow[], max: number): StepRow[][] {
  const steps = [...new Set(rows.map(({ step }) => step))];
  const width = Math.max(1, Math.ceil(steps.length / max));
  const columnOf = new Map(steps.map((step, at) => [step, Math.floor(at / width)]));
  const columns: StepRow[][] = Array.from({ length: Math.ceil(steps.length / width) }, () => []);
  for (const row of rows) columns[columnOf.get(row.step)!]!.push(row);
  return columns;
}

function stopsOf(rows: readonly StepRow[]): string[] {
  const totals = new Map<string, number>();
  for (const { figures } of rows)
    for (const [stop, count] of Object.entries(figures.stops)) totals.set(stop, (totals.get(stop) ?? 0) + count);
  return [...totals].toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).map(([stop]) => stop);
}
