import { columnEdges } from '../charts/draw.ts';
import type { ChartAxis } from '../charts/context.ts';
import { formatCount } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import type { ChartX } from '../data/run-queries.ts';

/** The axis that all charts of a comparison share. */
export function axisOf(x: ChartX, each: readonly { at: number[] }[], inferred: boolean): ChartAxis {
  const all = [...new Set(each.flatMap(({ at }) => at))].toSorted((a, b) => a - b);
  const edges = columnEdges(all);
  const range: [number, number] = all.length === 0 ? [0, 1] : x === 'step' ? [edges[0]![0], edges.at(-1)![1]] : [all[0]!, all.at(-1)! || 1];
  if (x === 'time') return { kind: 'time', name: 'Time since the first point', inferred: false, range, format: (at) => formatDuration(at) };
  const format = (value: number) => (Number.isInteger(value) ? formatCount(value) : '');
  return {
    kind: x,
    name: x === 'step' ? `Step${inferred ? ' (inferred in part)' : ''}` : 'Rollouts so far',
    inferred: false,
    range,
    format,
  };
}
