import { useSyncExternalStore } from 'react';
import { store, stored } from './stored.ts';

export type Density = 'compact' | 'comfortable';
/** Pixels; `--row` of tokens.css has the same values. */
export const ROW_HEIGHT: Readonly<Record<Density, number>> = { compact: 28, comfortable: 34 };
const storageKey = 'palestra.density';
const listeners = new Set<() => void>();
const root = document.documentElement;

const current = (): Density => (root.dataset['density'] === 'comfortable' ? 'comfortable' : 'compact');
root.dataset['density'] = stored(storageKey) === 'comfortable' ? 'comfortable' : 'compact';

export function chooseDensity(density: Density): void {
  store(storageKey, density === 'compact' ? null : density);
  root.dataset['density'] = density;
  for (const listener of listeners) listener();
}

export const useDensity = (): Density =>
  useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, current);

/** Row height in pixels, for virtual lists. */
export const useRowHeight = (): number => ROW_HEIGHT[useDensity()];
