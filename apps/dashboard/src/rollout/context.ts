import type { RolloutCalls } from '@palestra/protocol';
import { createContext, useContext } from 'react';

/** What every row of one rollout needs. */
export interface RolloutContext {
  id: string;
  /** Ledger's word on a call, by its message index. */
  calls: ReadonlyMap<number, RolloutCalls['calls'][number]>;
  verified: RolloutCalls['verified'];
  /** Opens the picture over the page. */
  showImage: (url: string) => void;
  /** Says in words that readers wrote something about this message; by index. */
  notes: ReadonlyMap<number, string>;
  /** The rollout's card that decided its reward has the only strong mark; whether that reward is a success. */
  solved: (reward: number) => boolean;
}
const Context = createContext<RolloutContext | null>(null);
export const RolloutProvider = Context.Provider;

export function useRollout(): RolloutContext {
  const context = useContext(Context);
  if (!context) throw new Error('useRollout outside of a rollout');
  return context;
}

/** How a row is shown: folded, opened by the reader's own hand, or by "expand all", which leaves very large texts folded. */
export type Openness = 'folded' | 'open' | 'all';
