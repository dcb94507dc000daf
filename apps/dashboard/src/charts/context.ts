import { createContext, useContext } from 'react';

/** The horizontal axis that all charts of a page share. */
export interface ChartAxis {
  kind: 'step' | 'time' | 'count';
  /** `step`, `step (inferred)`, `time`. */
  name: string;
  /** Steps were inferred, not uploaded: lines are dashed, numbers get a `~`. */
  inferred: boolean;
  range: readonly [number, number];
  format: (x: number) => string;
}

/** What the charts of a page share: axis, cursor, and the action of a brush. */
export interface ChartContext {
  axis: ChartAxis;
  /** Charts with the same key move their cursors together. */
  sync: string;
  /** The reader selected a range of steps; both ends are included. */
  onBrush: (from: number, to: number) => void;
  onClear: () => void;
  /** A range is selected, so a double click clears it. */
  ranged: boolean;
}

const Context = createContext<ChartContext | null>(null);
export const ChartContextProvider = Context.Provider;

export function useChartContext(): ChartContext {
  const context = useContext(Context);
  if (!context) throw new Error('This chart needs a ChartContextProvider above it');
  return context;
}
