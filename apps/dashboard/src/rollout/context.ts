import type { RolloutCalls } from '@palestra/protocol';
import { createContext, useContext } from 'react';

/** Data of the rollout that its rows read. */
export interface RolloutContext {
  id: string;
  /** Ledger calls, by message index. */
  calls: ReadonlyMap<number, RolloutCalls['calls'][number]>;
  verified: RolloutCalls['verified'];
  /** Opens the image in a dialog. */
  showImage: (url: string) => void;
  /** Texts of the annotations, by message index. */
  notes: ReadonlyMap<number, string>;
  /** Whether a reward is a success. */
  solved: (reward: number) => boolean;
}
const Context = createContext<RolloutContext | null>(null);
export const RolloutProvider = Context.Provider;

export function useRollout(): RolloutContext {
  const context = useContext(Context);
  if (!context) throw new Error('useRollout is called outside of a RolloutProvider');
  return context;
}

/** Whether a row is collapsed, open, or open on paper, which has only the beginning of very large texts. */
export type Openness = 'folded' | 'open' | 'printed';
