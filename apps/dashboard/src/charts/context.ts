import { createContext, useContext } from 'react';

/** The horizontal axis that all charts of a page share. */
export interface ChartAxis {
  kind: 'step' | 'time' | 'count';
  /** `step`, `step (inferred)`, `time`. */
  name: string;
  /** Steps that nobody uploaded: lines are dashed, numbers get a `~`. */
  inferred: boolean;
  range: readonly [number, number];
  format: (x: number) => string;
}

/** What charts of one page have in common: their axis, their cursor, and what a brush over them means. */
export interface ChartContext {
  axis: ChartAxis;
  /** Charts of the same name move their cursors together. */
  sync: string;
  /** The reader drew a range: first and last step in it. */
  onBrush: (from: number, to: number) => void;
  onClear: () => void;
  /** A range is chosen, which a double click would clear. */
  ranged: boolean;
}

const Context = createContext<ChartContext | null>(null);
export const ChartContextProvider = Context.Provider;

export function useChartContext(): ChartContext {
  const context = useContext(Context);
  if (!context) throw new Error('A chart outside of a ChartContextProvider');
  return context;
}
