import type { RunView } from '@palestra/protocol';
import { createContext, useContext } from 'react';
import type { RunFilter } from '../data/run-queries.ts';

/** The run of the page and the filter in its address. */
export interface RunContext {
  org: string;
  run: RunView;
  filter: RunFilter;
  /** Changes parts of the filter in the address; undefined removes a part. */
  setFilter: (change: Partial<RunFilter>) => void;
}
const Context = createContext<RunContext | null>(null);
export const RunProvider = Context.Provider;

export function useRun(): RunContext {
  const context = useContext(Context);
  if (!context) throw new Error('useRun needs a RunProvider above it');
  return context;
}
