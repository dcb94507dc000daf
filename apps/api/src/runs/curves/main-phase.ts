import { type Phase, PHASES } from '@palestra/protocol';
import { codeOf, wordOf } from '../../store/vocabulary-codes.ts';
import type { StepRow } from '../../store/figures/step-figures.sql.ts';

/** Rows with a known step of one phase: the requested one, else the one with the most rollouts. Training and evaluation are never merged. */
export function mainPhase<Row extends Pick<StepRow, 'phase' | 'step' | 'rollouts'>>(
  rows: readonly Row[],
  requested: Phase | undefined,
): { phase: Phase | null; rows: Row[] } {
  const counts = new Map<number, number>();
  for (const { phase, rollouts } of rows) counts.set(phase, (counts.get(phase) ?? 0) + rollouts);
  const largest = [...counts].toSorted(([a, m], [b, n]) => n - m || a - b)[0]?.[0] ?? null;
  const phase = requested === undefined ? largest : codeOf(PHASES, requested);
  return { phase: wordOf(PHASES, phase), rows: rows.filter((row) => row.phase === phase && row.step >= 0) };
}
