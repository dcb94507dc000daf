import { useEffect, useMemo } from 'react';
import { store } from '../theme/stored.ts';

/** The number of hues for runs in tokens.css. */
export const HUES = 8;
const STORE = 'palestra.run-hues';

/** The hue of each run, most recently viewed first. */
export type Remembered = readonly (readonly [run: string, hue: number])[];

/**
 * Assigns hues 1 to 8. A run keeps its hue of earlier comparisons. A new run gets the first free hue, else the hue of the least recently
 * viewed run.
 */
export function huesOf(runs: readonly string[], remembered: Remembered): { hues: number[]; remembered: Remembered } {
  const known = new Map(remembered);
  const taken = new Set(remembered.map(([, hue]) => hue));
  const others = remembered.filter(([run]) => !runs.includes(run));
  const hues = runs.map((run) => {
    const previous = known.get(run);
    if (previous !== undefined) return previous;
    const free = Array.from({ length: HUES }, (_, i) => i + 1).find((hue) => !taken.has(hue));
    const hue = free ?? others.pop()?.[1] ?? 1;
    taken.add(hue);
    known.set(run, hue);
    return hue;
  });
  return { hues, remembered: [...runs.map((run, i) => [run, hues[i]!] as const), ...others].slice(0, HUES) };
}

function read(): Remembered {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORE) ?? '[]');
    const isPair = (one: unknown): one is readonly [string, number] =>
      Array.isArray(one) && typeof one[0] === 'string' && Number.isInteger(one[1]) && one[1] >= 1 && one[1] <= HUES;
    return Array.isArray(stored) ? stored.filter(isPair) : [];
  } catch {
    return [];
  }
}

/** Names of colours for these runs, remembered in this browser. */
export function useRunHues(runs: readonly string[]): string[] {
  const key = runs.join();
  const found = useMemo(() => huesOf(key === '' ? [] : key.split(','), read()), [key]);
  useEffect(() => {
    if (found.hues.length > 0) store(STORE, JSON.stringify(found.remembered));
  }, [found]);
  return useMemo(() => found.hues.map((hue) => `run-${hue}`), [found]);
}

const MAX_SHORT = 14;

/** The part of each name that differs, short enough for the end of a line: without the common prefix up to its last separator. */
export function shortNames(names: readonly string[]): string[] {
  const shortest = Math.min(...names.map((name) => name.length));
  let same = 0;
  while (same < shortest && names.every((name) => name[same] === names[0]![same])) same += 1;
  const at = names.length < 2 ? 0 : names[0]!.slice(0, same).search(/[^\p{L}\p{N}][\p{L}\p{N}]*$/u) + 1;
  return names.map((name) => {
    const rest = name.slice(at) || name;
    const short = at > 0 && at < name.length ? `…${rest}` : rest;
    // The end of a name is more specific than its middle.
    return short.length > MAX_SHORT ? `${short.slice(0, 4)}…${short.slice(5 - MAX_SHORT)}` : short;
  });
}
