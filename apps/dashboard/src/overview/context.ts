import type { RunSummary } from '@palestra/protocol';
import { createContext, useContext } from 'react';
import type { Curves, Phase } from './curves.ts';

/** What all panels of the Overview share: the phase, the names of points, and the action of a click. */
export interface OverviewContext {
  phase: Phase | null;
  /** Points are arrival windows, because no step is known. */
  isWindow: boolean;
  /** `step 12`, `~12`, `from 14:05`. */
  nameOf: (step: number, x: number) => string;
  /** Opens the Explorer with the rollouts of these steps and clauses; undefined for arrival windows, which a query cannot select. */
  open?: ((from: number, to: number, clauses?: readonly string[]) => void) | undefined;
  /** The curves that define the x of each step. */
  main: Curves;
  /** The most common number of rollouts in a group. */
  groupSize: RunSummary['group_size'];
}

const Context = createContext<OverviewContext | null>(null);
export const OverviewProvider = Context.Provider;

export function useOverview(): OverviewContext {
  const context = useContext(Context);
  if (!context) throw new Error('useOverview needs an OverviewProvider above it');
  return context;
}
