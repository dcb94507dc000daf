import type { RunView } from '@palestra/protocol';
import { createContext, useContext } from 'react';
import type { RunFilter } from '../data/run-reads.ts';

/** The run that all pages below its address are about. */
export interface RunContext {
  org: string;
  run: RunView;
  filter: RunFilter;
  /** Changes part of the filter in the address; undefined takes a part away. */
  setFilter: (change: Partial<RunFilter>) => void;
}
const Context = createContext<RunContext | null>(null);
export const RunProvider = Context.Provider;

export function useRun(): RunContext {
  const context = useContext(Context);
  if (!context) throw new Error('useRun outside of the pages of a run');
  return context;
}
