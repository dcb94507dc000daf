import { createContext, useContext } from 'react';
import type { Curves, Phase } from './curves.ts';

/** What all panels of the Overview need beside the run: its phase, how a point is named, and what a click on it opens. */
export interface OverviewContext {
  phase: Phase | null;
  /** Points are windows of arrival: no step is known. */
  isWindow: boolean;
  /** `step 12`, `~12`, `from 14:05`. */
  nameOf: (step: number, x: number) => string;
  /** Opens the Explorer with the rollouts of these steps and clauses; undefined where points are no steps, which no query finds. */
  open?: ((from: number, to: number, clauses?: readonly string[]) => void) | undefined;
  /** x of a step, by the run's main curve. */
  main: Curves;
}

const Context = createContext<OverviewContext | null>(null);
export const OverviewProvider = Context.Provider;

export function useOverview(): OverviewContext {
  const context = useContext(Context);
  if (!context) throw new Error('useOverview outside of the Overview');
  return context;
}
