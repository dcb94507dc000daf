import { useSyncExternalStore } from 'react';
import { store, stored } from './stored.ts';

const storageKey = 'palestra.rail';
const listeners = new Set<() => void>();
const root = document.documentElement;

const isFolded = (): boolean => root.dataset['rail'] === 'folded';
if (stored(storageKey) === 'folded') root.dataset['rail'] = 'folded';

/** Collapses the navigation rail to icons, or expands it. tokens.css has both widths. */
export function foldRail(folded: boolean): void {
  store(storageKey, folded ? 'folded' : null);
  if (folded) root.dataset['rail'] = 'folded';
  else delete root.dataset['rail'];
  for (const listener of listeners) listener();
}

export const useFoldedRail = (): boolean =>
  useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, isFolded);
