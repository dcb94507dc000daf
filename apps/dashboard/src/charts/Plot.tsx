import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { token, useTheme } from '../theme/theme.ts';
import { type ChartContext, useChartContext } from './context.ts';

/** The position of the pointer. `y` is in the unit of the chart, and null while the pointer is in another chart. */
export interface Hover {
  index: number;
  y: number | null;
}

export interface PlotShape {
  series: uPlot.Series[];
  bands?: uPlot.Band[];
  /** The range of the vertical axis for these extreme values. */
  yRange: (low: number | null, high: number | null) => [number, number];
  formatY: (y: number) => string;
  /** Draws after the grid and before the lines. */
  under?: (plot: uPlot) => void;
  over?: (plot: uPlot) => void;
  /** Width for the names of lines, px. */
  right?: number;
  cursorY?: boolean;
}

interface Props {
  /** A new name creates a new chart; new data alone redraws the existing chart. */
  name: string;
  shape: () => PlotShape;
  data: uPlot.AlignedData;
  /** First and last step of each point. */
  from: readonly number[];
  to: readonly number[];
  height?: number;
  label: string;
  onHover?: (hover: Hover | null) => void;
  onPick?: (hover: Hover) => void;
}

const DRAG_PX = 5;
/** How long a first click waits for a second one while a double click would clear the range. */
const DOUBLE_MS = 250;
const stepIncrements = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6];
const timeIncrements = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 604_800].map((s) => s * 1000);

/** Width in px of the vertical axis: PlotMarks.tsx assumes the smallest one. */
const axisPx = (_plot: unknown, labels: readonly string[] | null): number =>
  Math.max(40, ...(labels ?? []).map((label) => 10 + 6.4 * label.length));

function axesOf(axis: ChartContext['axis'], formatY: (y: number) => string): uPlot.Axis[] {
  const common = { stroke: token('ink-3'), font: `450 11px ${token('font-interface')}`, ticks: { show: false } };
  const incrs = axis.kind === 'time' ? timeIncrements : stepIncrements;
  return [
    { ...common, grid: { show: false }, size: 20, gap: 4, space: 56, incrs, values: (_plot, values) => values.map(axis.format) },
    {
      ...common,
      grid: { stroke: token('grid'), width: 1 },
      size: axisPx,
      gap: 6,
      space: 28,
      values: (_plot, values) => values.map(formatY),
    },
  ];
}

/** A uPlot canvas with the axis, cursor and brush of its page. Adapts to its width and the theme. */
export function Plot(props: Props) {
  const { name, data, height = 150, label } = props;
  const context = useChartContext();
  const theme = useTheme();
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef({ props, context });
  useEffect(() => {
    latest.current = { props, context };
  });
  useEffect(() => {
    const element = holder.current!;
    const created = new uPlot(optionsOf(latest, element.clientWidth, height), latest.current.props.data, element);
    plot.current = created;
    const removeClicks = listenToClicks(created, latest);
    const observer = new ResizeObserver(() => created.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      removeClicks();
      created.destroy();
      plot.current = null;
    };
  }, [name, height, theme, context.axis.kind, context.sync]);
  const drawn = useRef(data);
  useEffect(() => {
    if (drawn.current === data) return;
    drawn.current = data;
    plot.current?.setData(data);
  }, [data]);
  return <div ref={holder} role="img" aria-label={label} className="cursor-crosshair" style={{ height }} />;
}

type Latest = { readonly current: { props: Props; context: ChartContext } };

function optionsOf(latest: Latest, width: number, height: number): uPlot.Options {
  const shape = latest.current.props.shape();
  const current = () => latest.current.props.shape();
  return {
    width,
    height,
    legend: { show: false },
    // Half of a clock time may extend beyond the last tick.
    padding: [8, Math.max(shape.right ?? 8, latest.current.context.axis.kind === 'time' ? 26 : 0), 0, 0],
    scales: {
      x: { time: false, range: () => [...latest.current.context.axis.range] as [number, number] },
      y: { range: (_plot, low, high) => current().yRange(low, high) },
    },
    axes: axesOf(latest.current.context.axis, shape.formatY),
    series: [{}, ...shape.series],
    ...(shape.bands && { bands: shape.bands }),
    cursor: {
      y: shape.cursorY ?? false,
      points: { size: 6, width: 1.5 },
      drag: { x: true, y: false, setScale: false, dist: DRAG_PX },
      sync: {
        key: latest.current.context.sync,
        setSeries: false,
        scales: ['x', null],
        filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' },
      },
      bind: { dblclick: () => () => null },
    },
    hooks: {
      drawAxes: [(plot) => current().under?.(plot)],
      draw: [(plot) => current().over?.(plot)],
      setCursor: [reportHover(latest)],
      setSelect: [(plot) => brush(plot, latest)],
    },
  };
}

/** Reports a hover only if it changed: a redraw sets the cursor again at the same position. */
function reportHover(latest: Latest): (plot: uPlot) => void {
  let reported: Hover | null = null;
  return (plot) => {
    const hover = hoverOf(plot);
    if (hover?.index === reported?.index && hover?.y === reported?.y) return;
    reported = hover;
    latest.current.props.onHover?.(hover);
  };
}

function hoverOf(plot: uPlot): Hover | null {
  const index = plot.cursor.idx;
  if (index === null || index === undefined || (plot.cursor.left ?? -1) < 0) return null;
  return { index, y: plot.over.matches(':hover') ? plot.posToVal(plot.cursor.top ?? 0, 'y') : null };
}

const dragged = new WeakMap<uPlot, number>();

function brush(plot: uPlot, { current: { props, context } }: Latest): void {
  const { left, width } = plot.select;
  if (width < DRAG_PX) return;
  dragged.set(plot, performance.now());
  const xs = plot.data[0];
  const [low, high] = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')];
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  const inside = [...xs].flatMap((x, i) => (x >= low && x <= high ? [i] : []));
  // A brush between two points selects the nearest point.
  const nearest = plot.valToIdx((low + high) / 2);
  const [first, last] = [inside[0] ?? nearest, inside.at(-1) ?? nearest];
  if (props.from[first] !== undefined && props.to[last] !== undefined) context.onBrush(props.from[first], props.to[last]);
}

/** A click picks a point, a double click clears the range. The end of a drag does neither. */
function listenToClicks(plot: uPlot, latest: Latest): () => void {
  let waiting: ReturnType<typeof setTimeout> | undefined;
  const onClick = () => {
    clearTimeout(waiting);
    const hover = hoverOf(plot);
    const ofDrag = performance.now() - (dragged.get(plot) ?? -Infinity) < 50;
    if (!hover || ofDrag) return;
    const pick = () => latest.current.props.onPick?.(hover);
    if (latest.current.context.ranged) waiting = setTimeout(pick, DOUBLE_MS);
    else pick();
  };
  const onDouble = () => {
    clearTimeout(waiting);
    latest.current.context.onClear();
  };
  plot.over.addEventListener('click', onClick);
  plot.over.addEventListener('dblclick', onDouble);
  return () => {
    clearTimeout(waiting);
    plot.over.removeEventListener('click', onClick);
    plot.over.removeEventListener('dblclick', onDouble);
  };
}
