import { useMemo, useState } from 'react';
import type uPlot from 'uplot';
import { clipped, endLabels, mark } from '../charts/draw.ts';
import { Panel, Readout } from '../charts/Panel.tsx';
import { type Hover, Plot, type PlotShape } from '../charts/Plot.tsx';
import { type ChartContext, ChartContextProvider, useChartContext } from '../charts/context.ts';
import type { ChartX } from '../data/run-queries.ts';
import { curveInWords } from '../overview/curves.ts';
import { definitionOf, formatAxis, formatFigure, unitOf } from '../overview/figures.ts';
import { token } from '../theme/theme.ts';
import { axisOf } from './axis.ts';
import { commonK, compared, type ComparedCurves, curvesOfRuns, lastOf, valueAt } from './curves.ts';
import type { ComparedRun } from './runs.ts';

/** Runs differ by dash as well as by hue; by position in the comparison. */
const DASHES = [[], [7, 3], [2, 3], [8, 3, 2, 3]] as const;
const LABEL_PX = 94;
const NONE: readonly number[] = [];

const questions = [
  ['reward_mean', 'Which run has the higher reward?', 'fit'],
  ['pass@1', 'Which run solves more in one try?', 'unit'],
  ['pass@k', 'Which run solves more in k tries?', 'unit'],
  ['turns', 'Which run has longer episodes?', 'zero'],
  ['tool_error', 'Which run has more tool errors?', 'zero'],
  ['truncated', 'Which run truncates more rollouts?', 'zero'],
] as const;
/** Metrics of the charts. */
export const COMPARED_METRICS = ['reward_mean', 'pass@{k}', 'turns', 'tool_error', 'truncated'];

/** One chart per question, with all runs. */
export function RunCurves({ runs, x }: { runs: readonly ComparedRun[]; x: ChartX }) {
  const each = useMemo(() => curvesOfRuns(runs, x), [runs, x]);
  const k = useMemo(() => commonK(runs), [runs]);
  const inferred = runs.some(({ summary }) => (summary.provenance['step']?.['inferred'] ?? 0) > 0);
  const chartContext = useMemo<ChartContext>(
    () => ({ axis: axisOf(x, each, inferred), sync: 'compare', ranged: false, onBrush: () => undefined, onClear: () => undefined }),
    [x, each, inferred],
  );
  return (
    <ChartContextProvider value={chartContext}>
      <div className="chart-grid border-b border-line">
        {questions.map(([metric, title, y]) => {
          const m = metric === 'pass@k' ? `pass@${k ?? 1}` : metric;
          if (metric === 'pass@k' && k === 1) return null;
          return (
            <RunChart
              key={metric}
              title={metric === 'pass@k' && k !== null ? `Which run solves more in ${k} tries?` : title}
              m={m}
              y={y}
              runs={runs}
              each={each}
            />
          );
        })}
      </div>
    </ChartContextProvider>
  );
}

type Each = ReturnType<typeof curvesOfRuns>;
interface ChartProps {
  title: string;
  m: string;
  y: 'unit' | 'zero' | 'fit';
  runs: readonly ComparedRun[];
  each: Each;
}

function RunChart({ title, m, y, runs, each }: ChartProps) {
  const { axis } = useChartContext();
  const [hover, setHover] = useState<Hover | null>(null);
  const curves = useMemo(() => compared(each, m), [each, m]);
  const { x, lines } = curves;
  const drawn = useMemo(() => runs.flatMap((run, i) => (lines[i] ? [{ run, line: lines[i], dash: DASHES[i]! }] : [])), [runs, lines]);
  const at = hover && hover.index < x.length ? hover.index : null;
  // Runs of different length are read at their last common point.
  const common = x.findLastIndex((_, i) => drawn.every(({ line }) => typeof line.values[i] === 'number'));
  const shown = at ?? (common < 0 ? null : common);
  const pick = (values: Parameters<typeof lastOf>[0]) => (shown === null ? lastOf(values) : valueAt(values, shown));
  const nameOf = (value: number) =>
    axis.kind === 'step' ? `step ${axis.format(value)}` : axis.kind === 'count' ? `${axis.format(value)} rollouts` : axis.format(value);
  const missing = runs.filter((_, i) => lines[i] === null).map(({ letter }) => letter);
  const table = () => ({
    heads: [axis.name, ...drawn.flatMap(({ run }) => [`${run.letter} ${run.short}`, `n of ${run.letter}`])],
    rows: x.map((value, i) => [
      axis.format(value),
      ...drawn.flatMap(({ line }) => [formatFigure(m, line.values[i]), formatFigure('groups', line.denominators[i])]),
    ]),
  });
  const names = x.map(nameOf);
  const label = `${title} ${drawn.map(({ run, line }) => curveInWords(`${run.letter} ${run.run.name}`, line.values, names, (value) => formatFigure(m, value))).join('. ')}`;
  return (
    <Panel
      title={title}
      definitions={drawn.map(({ run, line }) => ({
        ...definitionOf(line.series),
        name: `${run.letter} ${run.run.name}: ${line.series.key}`,
      }))}
      note={missing.length > 0 && <span className="label">Not in {missing.join(', ')}</span>}
      readout={
        x.length > 0 && (
          <Readout
            at={shown === null ? 'last' : nameOf(x[shown]!)}
            values={drawn.map(({ run, line }) => [
              run.letter,
              `${formatFigure(m, pick(line.values))} · n ${formatFigure('groups', pick(line.denominators))}${unitOf(m) === 'rollouts' ? '' : ` ${unitOf(m)}`}`,
              run.hue,
            ])}
          />
        )
      }
      table={table}
      missing={drawn.length === 0 ? <p>No run has {m}: the uploads do not contain it.</p> : undefined}
    >
      <Lines label={label} m={m} y={y} x={x} drawn={drawn} onHover={setHover} />
    </Panel>
  );
}

type Drawn = { run: ComparedRun; line: NonNullable<ComparedCurves['lines'][number]>; dash: readonly number[] };

function rangeOf(kind: ChartProps['y'], low: number | null, high: number | null): [number, number] {
  if (kind === 'unit') return [0, 1];
  const bottom = kind === 'fit' && low !== null ? Math.min(0, low) : 0;
  const top = high ?? 1;
  return top <= bottom ? [bottom, bottom + 1] : [bottom, top + (top - bottom) * 0.05];
}

interface LinesProps {
  label: string;
  m: string;
  y: ChartProps['y'];
  x: readonly number[];
  drawn: readonly Drawn[];
  onHover: (hover: Hover | null) => void;
}

function Lines({ label, m, y, x, drawn, onHover }: LinesProps) {
  const data = useMemo(() => [x, ...drawn.map(({ line }) => line.values)] as unknown as uPlot.AlignedData, [x, drawn]);
  const shape = (): PlotShape => ({
    series: drawn.map(({ run, dash }) => ({ stroke: token(run.hue), width: 1.5, points: { show: false }, dash: [...dash] })),
    yRange: (low, high) => rangeOf(y, low, high),
    formatY: (value) => formatAxis(m, value),
    right: LABEL_PX,
    over: (plot) => {
      clipped(plot, () => drawn.forEach((one) => drawMarks(plot, x, one)));
      endLabels(
        plot,
        drawn.flatMap(({ run, line }) => labelOf(run, line.values)),
      );
    },
  });
  return (
    <Plot
      name={`${m}:${drawn.map(({ run }) => run.run.id + run.hue).join()}`}
      shape={shape}
      data={data}
      from={NONE}
      to={NONE}
      label={label}
      onHover={onHover}
    />
  );
}

function labelOf(run: ComparedRun, values: readonly (number | null | undefined)[]) {
  const last = values.findLast((value) => typeof value === 'number');
  return typeof last === 'number' ? [{ text: `${run.letter} ${run.short}`, y: last, colour: token(run.hue) }] : [];
}

/** Marks incomplete steps (hollow) and points without neighbours, which have no line. */
function drawMarks(plot: uPlot, x: readonly number[], { run, line: { values, hollow } }: Drawn): void {
  const known = values.flatMap((value, i) => (value === undefined ? [] : [i]));
  known.forEach((i, position) => {
    const value = values[i];
    if (typeof value !== 'number') return;
    const alone = typeof values[known[position - 1] ?? -1] !== 'number' && typeof values[known[position + 1] ?? -1] !== 'number';
    if (hollow[i] || alone) mark(plot, x[i]!, value, token(run.hue), hollow[i] ?? false);
  });
}
