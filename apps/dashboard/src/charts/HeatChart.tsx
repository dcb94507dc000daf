import type uPlot from 'uplot';
import { useMemo } from 'react';
import { token } from '../theme/theme.ts';
import { columnEdges } from './columns.ts';
import { clipped, fillCell } from './draw.ts';
import { RAMP, rampLegend, rampOf } from './heat.ts';
import { type Hover, Plot, type PlotShape } from './Plot.tsx';

interface Props {
  name: string;
  label: string;
  x: readonly number[];
  from: readonly number[];
  to: readonly number[];
  /** One more than there are bins. */
  edges: readonly number[];
  /** By column, then bin. */
  counts: readonly (readonly number[])[];
  formatY: (y: number) => string;
  height?: number;
  onHover?: (hover: Hover | null) => void;
  onPick?: (cell: { column: number; bin: number }) => void;
}

export const mostOf = (counts: readonly (readonly number[])[]): number =>
  counts.reduce((most, column) => column.reduce((a, b) => Math.max(a, b), most), 0);

/** The bin at a height of the chart. */
export function binAt(edges: readonly number[], y: number): number {
  const above = edges.findIndex((edge) => edge >= y);
  return Math.min(edges.length - 2, Math.max(0, above < 0 ? edges.length - 2 : above - 1));
}

/** The number of rollouts in each bin of each step. Empty cells are not drawn. */
export function HeatChart({ name, label, x, from, to, edges, counts, formatY, height, onHover, onPick }: Props) {
  const data = useMemo(() => [x, x.map(() => null)] as unknown as uPlot.AlignedData, [x]);
  const drawCells = (plot: uPlot) => {
    const most = mostOf(counts);
    const colours = Array.from({ length: RAMP + 1 }, (_, i) => (i === 0 ? '' : token(`ramp-${i}`)));
    const columns = columnEdges(x);
    counts.forEach((column, i) =>
      column.forEach((count, bin) => {
        if (count === 0) return;
        plot.ctx.fillStyle = colours[rampOf(count, most)]!;
        fillCell(plot, columns[i]!, edges[bin]!, edges[bin + 1]!);
      }),
    );
  };
  const shape = (): PlotShape => ({
    series: [{ stroke: 'transparent', points: { show: false } }],
    yRange: () => [edges[0]!, edges.at(-1)!],
    formatY,
    cursorY: true,
    under: (plot) => clipped(plot, () => drawCells(plot)),
  });
  const pick =
    onPick &&
    ((hover: Hover) => {
      if (hover.y !== null) onPick({ column: hover.index, bin: binAt(edges, hover.y) });
    });
  return <Plot name={name} shape={shape} data={data} from={from} to={to} {...{ label, height, onHover }} {...(pick && { onPick: pick })} />;
}

/** The counts of the lightest and the darkest colour, and of each colour on hover. */
export function HeatLegend({ most, of }: { most: number; of: string }) {
  const legend = rampLegend(most);
  if (legend.length === 0) return null;
  return (
    <span className="label flex flex-none items-center gap-[4px]" aria-label={`Colours: 1 to ${most} ${of} per cell, blank for none`}>
      <span>{legend[0]!.from}</span>
      <span className="flex" aria-hidden="true">
        {legend.map(({ colour, from, to }) => (
          <span
            key={colour}
            title={from === to ? `${from} ${of}` : `${from} to ${to} ${of}`}
            className="h-[9px] w-[11px]"
            style={{ background: `var(--ramp-${colour})` }}
          />
        ))}
      </span>
      <span>{most}</span>
    </span>
  );
}
