import type { RunSeries } from '@palestra/protocol';
import { columnEdges } from '../charts/columns.ts';
import type { ChartAxis } from '../charts/context.ts';
import { formatCount } from '../format/number.ts';
import type { Curves } from './curves.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

function timeFormat(span: number): (at: number) => string {
  if (span > 2 * DAY_MS) return (at) => new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'short' });
  const options: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit' };
  if (span < 10 * MINUTE_MS) options.second = '2-digit';
  return (at) => new Date(at).toLocaleTimeString('en-GB', options);
}

/** The axis of all charts of the Overview. */
export function chartAxis(answer: Pick<RunSeries, 'axis' | 'axis_label'> | undefined, { x }: Curves, inferred: boolean): ChartAxis {
  const edges = columnEdges(x);
  const range: [number, number] = edges.length === 0 ? [0, 1] : [edges[0]![0], edges.at(-1)![1]];
  const kind = answer?.axis ?? 'step';
  const label = answer?.axis_label ?? 'step';
  const name = inferred && kind !== 'window' ? `${label} (inferred)` : label;
  if (kind === 'time' || kind === 'window') return { kind: 'time', name, inferred, range, format: timeFormat(range[1] - range[0]) };
  const format = (value: number) => (Number.isInteger(value) ? `${inferred && kind === 'step' ? '~' : ''}${formatCount(value)}` : '');
  return { kind, name, inferred, range, format };
}

/** The name of a point: `step 12`, `~step 12`, `step 12 · 14:05`, `from 14:05:10`, `after 96 rollouts`. */
export function pointName({ kind, inferred, format }: ChartAxis, isWindow: boolean): (step: number, x: number) => string {
  if (isWindow) return (_step, x) => (kind === 'count' ? `after ${formatCount(x)} rollouts` : `from ${format(x)}`);
  const step = (at: number) => `${inferred ? '~' : ''}step ${at}`;
  if (kind === 'step') return step;
  return (at, x) => `${step(at)} · ${kind === 'count' ? `${formatCount(x)} rollouts` : format(x)}`;
}
