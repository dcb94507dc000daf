import type { RunView } from '@palestra/protocol';
import { createContext, useContext } from 'react';
import type { RunScope } from '../data/run-reads.ts';

/** The run that all pages below its address are about. */
export interface RunContext {
  org: string;
  run: RunView;
  scope: RunScope;
  /** Changes part of the scope in the address; undefined takes a part away. */
  setScope: (change: Partial<RunScope>) => void;
}
const Context = createContext<RunContext | null>(null);
export const RunProvider = Context.Provider;

export function useRun(): RunContext {
  const context = useContext(Context);
  if (!context) throw new Error('useRun outside of the pages of a run');
  return context;
}
