import { useSyncExternalStore } from 'react';

/** A command of the keyboard map. `key` is its default key and its name: `gg`, `mod+k` (Ctrl or ⌘). */
interface KeyEntry {
  key: string;
  description: string;
  /** The browser handles the key, so that it cannot be changed. */
  fixed?: true;
}
export const KEY_GROUPS: readonly { title: string; keys: readonly KeyEntry[] }[] = [
  {
    title: 'Everywhere',
    keys: [
      { key: 'mod+k', description: 'go to a page, run or environment' },
      { key: '?', description: 'show the keyboard map' },
      { key: '/', description: 'search' },
      { key: 'L', description: 'choose the metric definitions' },
      { key: 'z', description: 'freeze or unfreeze the page' },
    ],
  },
  {
    title: 'Lists',
    keys: [
      { key: 'j', description: 'next row' },
      { key: 'k', description: 'previous row' },
      { key: 'gg', description: 'first row' },
      { key: 'G', description: 'last row' },
      { key: 'Enter', description: 'open the row', fixed: true },
      { key: 'x', description: 'select the row' },
      { key: 'X', description: 'select the rows from the last selected one' },
      { key: 'Escape', description: 'clear the selection' },
    ],
  },
  {
    title: 'Rollout',
    keys: [
      { key: 'j', description: 'next turn' },
      { key: 'k', description: 'previous turn' },
      { key: 'J', description: 'next error or deciding reward' },
      { key: 'K', description: 'previous error or reward' },
      { key: 'h', description: 'previous sample (left)' },
      { key: 'l', description: 'next sample (right)' },
      { key: '[', description: 'previous sample of the group' },
      { key: ']', description: 'next sample of the group' },
      { key: '{', description: 'same task, previous step' },
      { key: '}', description: 'same task, next step' },
      { key: 'n', description: 'next rollout of the query' },
      { key: 'p', description: 'previous rollout of the query' },
      { key: 'd', description: 'compare with the best sample' },
      { key: 'e', description: 'expand or collapse the row' },
      { key: 'E', description: 'expand or collapse all rows' },
      { key: 'r', description: 'show or hide reasoning' },
      { key: 't', description: 'follow new messages' },
      { key: 'f', description: 'show only the transcript' },
      { key: 'mod+f', description: 'find in this rollout' },
      { key: 'mod+p', description: 'print the whole rollout' },
      { key: 'y', description: 'copy a link to this message' },
      { key: 'g', description: 'verdict: good' },
      { key: 'b', description: 'verdict: bad' },
      { key: 'x', description: 'verdict: exploit' },
      ...[1, 2, 3, 4, 5].map((score) => ({ key: String(score), description: `score ${score} of 5` })),
      { key: 'Escape', description: 'go back' },
    ],
  },
  {
    title: 'Review',
    keys: [
      ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((label) => ({ key: String(label), description: `label ${label} of the rubric` })),
      { key: 'ArrowLeft', description: 'the left rollout is better' },
      { key: 'ArrowRight', description: 'the right rollout is better' },
      { key: '=', description: 'both are equally good' },
      { key: 'n', description: 'skip the item' },
      { key: 'u', description: 'go back to the item before' },
      { key: 'c', description: 'write a comment' },
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

/** Sets the key of a command; null resets it. This browser stores the change. */
export function remapKey(command: string, key: string | null): void {
  const { [command]: _, ...rest } = overrides;
  overrides = key === null || key === command ? rest : { ...rest, [command]: key };
  try {
    localStorage.setItem(STORAGE, JSON.stringify(overrides));
  } catch {
    // Without storage the change lasts until the page is closed.
  }
  listeners.forEach((listener) => listener());
}

/** The current key of a command. */
export const keyOf = (command: string): string => overrides[command] ?? command;

/** The command of a key. The default key of a remapped command has none. */
export function commandOf(key: string): string | null {
  const remapped = Object.entries(overrides).find(([, newKey]) => newKey === key);
  if (remapped) return remapped[0];
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
