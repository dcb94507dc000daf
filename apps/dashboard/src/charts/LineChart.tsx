import type uPlot from 'uplot';
import { useMemo } from 'react';
import { token } from '../theme/theme.ts';
import { clipped, endLabels, faded, mark } from './draw.ts';
import { type Hover, Plot, type PlotShape } from './Plot.tsx';
import { useChartContext } from './context.ts';

/** `undefined`: no such point, so the line continues; `null`: no value, so the line breaks. */
export type Column = readonly (number | null | undefined)[];

export interface Line {
  name: string;
  values: Column;
  /** A colour of tokens.css. */
  colour: string;
  /** Draws the name at the end of the line. */
  labelled?: boolean;
}

export interface Band {
  low: Column;
  high: Column;
  colour: string;
  alpha: number;
}

interface Props {
  name: string;
  label: string;
  x: readonly number[];
  steps: readonly number[];
  lines: readonly Line[];
  bands?: readonly Band[];
  /** Single values behind the lines, such as the rollouts of a mean. */
  dots?: readonly { x: number; y: number }[];
  /** Marks every point, for lines with few. */
  marked?: boolean;
  /** Incomplete points, which get hollow marks. */
  hollow?: readonly boolean[];
  formatY: (y: number) => string;
  /** `unit`: 0 to 1; `zero`: from 0; `fit`: from 0, or from the smallest negative value. */
  y: 'unit' | 'zero' | 'fit';
  height?: number;
  onHover?: (hover: Hover | null) => void;
  onPick?: (hover: Hover) => void;
}

/** One array for all renders: a new array would count as new data. */
const NONE: readonly never[] = [];
/** Width in px for a name of this length. */
const labelPx = (letters: number): number => Math.min(150, Math.max(44, 12 + 6.6 * letters));

function rangeOf(kind: Props['y'], low: number | null, high: number | null): [number, number] {
  if (kind === 'unit') return [0, 1];
  const top = high === null ? 1 : high;
  const bottom = kind === 'fit' && low !== null ? Math.min(0, low) : 0;
  const room = (top - bottom || 1) * 0.04;
  return [bottom === 0 ? 0 : bottom - room, top <= bottom ? bottom + 1 : top + room];
}

/** Lines over bands. Names at the ends of lines replace a legend. Incomplete steps have hollow marks, inferred steps a dashed line. */
export function LineChart(props: Props) {
  const {
    name,
    label,
    x,
    steps,
    lines,
    bands = NONE,
    hollow = NONE,
    dots = NONE,
    marked = false,
    formatY,
    y,
    height,
    onHover,
    onPick,
  } = props;
  const { axis } = useChartContext();
  const data = useMemo(
    () => [x, ...bands.flatMap(({ low, high }) => [low, high]), ...lines.map(({ values }) => values)] as unknown as uPlot.AlignedData,
    [x, bands, lines],
  );
  const shape = (): PlotShape => ({
    series: [
      ...bands.flatMap((): uPlot.Series[] => [
        { stroke: 'transparent', width: 0, points: { show: false } },
        { stroke: 'transparent', width: 0, points: { show: false } },
      ]),
      ...lines.map(({ colour }): uPlot.Series => ({
        stroke: token(colour),
        width: 1.5,
        points: { show: false },
        ...(axis.inferred && { dash: [5, 3] }),
      })),
    ],
    bands: bands.map(({ colour, alpha }, i) => ({ series: [2 * i + 2, 2 * i + 1], fill: faded(colour, alpha) })),
    yRange: (low, high) => {
      const all = [low, high, ...dots.map((dot) => dot.y)].filter((value) => value !== null);
      return rangeOf(y, all.length === 0 ? null : Math.min(...all), all.length === 0 ? null : Math.max(...all));
    },
    formatY,
    right: lines.some(({ labelled }) => labelled) ? labelPx(Math.max(...lines.map((line) => line.name.length))) : 8,
    under: (plot) =>
      clipped(plot, () => {
        drawSinglePoint(plot, x, bands);
        drawDots(plot, dots, lines[0]?.colour ?? 'ink-3');
      }),
    over: (plot) => {
      lines.forEach((line) => drawMarks(plot, x, line, hollow, marked));
      const ends = lines.flatMap((line) => {
        const last = line.labelled ? line.values.findLast((value) => typeof value === 'number') : undefined;
        return typeof last === 'number' ? { text: line.name, y: last, colour: token(line.colour) } : [];
      });
      endLabels(plot, ends);
    },
  });
  const kind = `${name}:${axis.inferred}:${bands.length}:${dots.length}:${lines.map((line) => line.name + line.colour).join()}`;
  return <Plot name={kind} shape={shape} data={data} from={steps} to={steps} {...{ label, height, onHover, onPick }} />;
}

/** Draws the bands of a single step, which would have no width. */
function drawSinglePoint(plot: uPlot, x: readonly number[], bands: readonly Band[]): void {
  if (x.length !== 1) return;
  const half = 6 * devicePixelRatio;
  const at = plot.valToPos(x[0]!, 'x', true);
  for (const { low, high, colour, alpha } of bands) {
    const [from, to] = [low[0], high[0]];
    if (typeof from !== 'number' || typeof to !== 'number') continue;
    const [y0, y1] = [plot.valToPos(to, 'y', true), plot.valToPos(from, 'y', true)];
    plot.ctx.fillStyle = faded(colour, alpha);
    plot.ctx.fillRect(at - half, y0, 2 * half, Math.max(1, y1 - y0));
  }
}

/** Faint, so that equal values add up. */
function drawDots(plot: uPlot, dots: readonly { x: number; y: number }[], colour: string): void {
  plot.ctx.fillStyle = faded(colour, 0.35);
  for (const { x, y } of dots) {
    plot.ctx.beginPath();
    plot.ctx.arc(plot.valToPos(x, 'x', true), plot.valToPos(y, 'y', true), 2 * devicePixelRatio, 0, 2 * Math.PI);
    plot.ctx.fill();
  }
}

function drawMarks(plot: uPlot, x: readonly number[], { values, colour }: Line, hollow: readonly boolean[], marked: boolean): void {
  values.forEach((value, i) => {
    if (typeof value !== 'number') return;
    const alone = typeof values[i - 1] !== 'number' && typeof values[i + 1] !== 'number';
    if (hollow[i] || alone || marked) mark(plot, x[i]!, value, token(colour), hollow[i] ?? false);
  });
}
