import type { Axis } from '@palestra/protocol';
import { widthInWords } from '../../store/figures/arrival-windows.ts';
import { isWindow, type StepRow } from '../../store/figures/step-figures.sql.ts';

/** The axis of these points, in a reader's words: a step that is not known is none, whatever was asked for. */
export function axisOf(rows: readonly StepRow[], asked: Axis): { axis: Axis; axis_label: string; window_ms: number | null } {
  const window = rows.find(isWindow)?.window;
  const axis = asked === 'time' || asked === 'count' ? asked : window ? 'window' : 'step';
  const words = window ? `arrival window of ${widthInWords(window.width_ms)}` : 'step';
  const labels: Record<Axis, string> = { step: 'step', window: words, time: `time, by ${words}`, count: `rollouts, by ${words}` };
  return { axis, axis_label: labels[axis], window_ms: window?.width_ms ?? null };
}
