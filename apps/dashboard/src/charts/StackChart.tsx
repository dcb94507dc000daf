import type uPlot from 'uplot';
import { useMemo } from 'react';
import { token } from '../theme/theme.ts';
import { columnEdges } from './columns.ts';
import { clipped, endLabels, faded, fillCell } from './draw.ts';
import { type Hover, Plot, type PlotShape } from './Plot.tsx';

/** One layer; values are shares of each step. Layers stack from bottom to top. */
export interface Layer {
  name: string;
  values: readonly (number | null | undefined)[];
  colour: string;
  alpha: number;
}

interface Props {
  name: string;
  label: string;
  x: readonly number[];
  from: readonly number[];
  to: readonly number[];
  layers: readonly Layer[];
  /** The value of a whole column: 1 for shares. */
  top: number;
  formatY: (y: number) => string;
  height?: number;
  onHover?: (hover: Hover | null) => void;
  onPick?: (hover: Hover & { layer: string | null }) => void;
}

/** Running sums per column: where each layer begins, and where the last one ends. */
export function stackSums(layers: readonly Layer[], length: number): number[][] {
  const sums: number[][] = [Array.from({ length }, () => 0)];
  for (const { values } of layers) sums.push(sums.at(-1)!.map((sum, i) => sum + (values[i] ?? 0)));
  return sums;
}

/** Stacked shares, one column per step. A share belongs to its step, so nothing is drawn between steps. */
export function StackChart({ name, label, x, from, to, layers, top, formatY, height, onHover, onPick }: Props) {
  const data = useMemo(() => [x, x.map(() => null)] as unknown as uPlot.AlignedData, [x]);
  const sums = useMemo(() => stackSums(layers, x.length), [layers, x.length]);
  const drawLayers = (plot: uPlot) => {
    const edges = columnEdges(x);
    layers.forEach(({ colour, alpha }, layer) => {
      plot.ctx.fillStyle = faded(colour, alpha);
      edges.forEach((edge, i) => {
        const [low, high] = [sums[layer]![i]!, sums[layer + 1]![i]!];
        if (high > low) fillCell(plot, edge, low, high);
      });
    });
  };
  const shape = (): PlotShape => ({
    series: [{ show: true, stroke: 'transparent', points: { show: false } }],
    yRange: () => [0, top],
    formatY,
    right: 78,
    under: (plot) => clipped(plot, () => drawLayers(plot)),
    over: (plot) => {
      const last = x.length - 1;
      const ends = layers.flatMap((layer, i) => {
        const [low, high] = [sums[i]![last] ?? 0, sums[i + 1]![last] ?? 0];
        return high - low > top * 0.004 ? { text: layer.name, y: (low + high) / 2, colour: token('ink-2') } : [];
      });
      endLabels(plot, ends);
    },
  });
  const pick = onPick && ((hover: Hover) => onPick({ ...hover, layer: layerAt(sums, layers, hover) }));
  const kind = `${name}:${layers.map((layer) => layer.name + layer.colour).join()}`;
  return <Plot name={kind} shape={shape} data={data} from={from} to={to} {...{ label, height, onHover }} {...(pick && { onPick: pick })} />;
}

function layerAt(sums: readonly number[][], layers: readonly Layer[], { index, y }: Hover): string | null {
  if (y === null) return null;
  const at = layers.findIndex((_layer, i) => y > sums[i]![index]! && y <= sums[i + 1]![index]!);
  return layers[at]?.name ?? null;
}
