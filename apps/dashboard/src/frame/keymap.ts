import { useSyncExternalStore } from 'react';

/** A command of the keyboard map (dashboard.md 6.2), named by its default key: `gg`, `mod+k` (Ctrl or ⌘). */
interface KeyEntry {
  key: string;
  what: string;
  /** The browser's own, which cannot be given another. */
  fixed?: true;
}
export const KEY_GROUPS: readonly { title: string; keys: readonly KeyEntry[] }[] = [
  {
    title: 'Everywhere',
    keys: [
      { key: 'mod+k', what: 'find a page, a run, an environment' },
      { key: '?', what: 'this list' },
      { key: '/', what: 'search' },
      { key: 'L', what: 'whose definitions the metrics follow' },
      { key: 'z', what: 'freeze the page, or let it go on' },
    ],
  },
  {
    title: 'Lists',
    keys: [
      { key: 'j', what: 'next row' },
      { key: 'k', what: 'previous row' },
      { key: 'gg', what: 'first row' },
      { key: 'G', what: 'last row' },
      { key: 'Enter', what: 'open the row', fixed: true },
      { key: 'x', what: 'choose the row' },
    ],
  },
  {
    title: 'Rollout',
    keys: [
      { key: 'j', what: 'next turn' },
      { key: 'k', what: 'previous turn' },
      { key: 'J', what: 'next error or reward' },
      { key: 'K', what: 'previous error or reward' },
      { key: 'h', what: 'sample to the left' },
      { key: 'l', what: 'sample to the right' },
      { key: '[', what: 'previous sibling of the group' },
      { key: ']', what: 'next sibling of the group' },
      { key: '{', what: 'same task, step before' },
      { key: '}', what: 'same task, step after' },
      { key: 'n', what: 'next of the query' },
      { key: 'p', what: 'previous of the query' },
      { key: 'd', what: 'compare with the best sibling' },
      { key: 'e', what: 'open or close what is folded' },
      { key: 'E', what: 'open or close everything' },
      { key: 'r', what: 'show or hide reasoning' },
      { key: 't', what: 'follow the end, or stay' },
      { key: 'f', what: 'focus: the transcript alone' },
      { key: 'mod+f', what: 'find in this rollout' },
      { key: 'mod+p', what: 'print the whole rollout' },
      { key: 'y', what: 'copy a link to this message' },
      { key: 'g', what: 'verdict: good' },
      { key: 'b', what: 'verdict: bad' },
      { key: 'x', what: 'verdict: exploit' },
      ...[1, 2, 3, 4, 5].map((score) => ({ key: String(score), what: `score ${score} of 5` })),
      { key: 'Escape', what: 'back, in place' },
    ],
  },
];

const STORAGE = 'palestra.keys';
type Overrides = Readonly<Record<string, string>>;
const listeners = new Set<() => void>();
let overrides: Overrides = read();

function read(): Overrides {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(STORAGE) ?? '{}');
    if (typeof value !== 'object' || value === null) return {};
    return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
  } catch {
    return {};
  }
}

/** Gives a command another key; null gives it back its own. The choice stays in this browser. */
export function remapKey(command: string, key: string | null): void {
  const { [command]: _, ...rest } = overrides;
  overrides = key === null || key === command ? rest : { ...rest, [command]: key };
  try {
    localStorage.setItem(STORAGE, JSON.stringify(overrides));
  } catch {
    // Then it lasts as long as the page.
  }
  listeners.forEach((listener) => listener());
}

/** The key of a command now. */
export const keyOf = (command: string): string => overrides[command] ?? command;

/** The command that a key stands for: a key that was given to another command no longer stands for its own. */
export function commandOf(key: string): string | null {
  const other = Object.entries(overrides).find(([, mine]) => mine === key);
  if (other) return other[0];
  return key in overrides ? null : key;
}

export const useKeymap = (): Overrides =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => overrides,
  );
