import type { Axis } from '@palestra/protocol';
import { widthInWords } from '../../store/figures/arrival-windows.ts';
import { isWindow, type StepRow } from '../../store/figures/step-figures.sql.ts';

/** The axis of these points and its label. Rows without a known step have arrival windows, whatever the request says. */
export function axisOf(rows: readonly StepRow[], requested: Axis): { axis: Axis; axis_label: string; window_ms: number | null } {
  const window = rows.find(isWindow)?.window;
  const axis = requested === 'time' || requested === 'count' ? requested : window ? 'window' : 'step';
  const words = window ? `arrival window of ${widthInWords(window.width_ms)}` : 'step';
  const labels: Record<Axis, string> = { step: 'step', window: words, time: `time, by ${words}`, count: `rollouts, by ${words}` };
  return { axis, axis_label: labels[axis], window_ms: window?.width_ms ?? null };
}
