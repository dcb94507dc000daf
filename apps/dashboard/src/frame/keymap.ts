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
      { key: 'mod+k', description: 'Go to a page, run or environment' },
      { key: '?', description: 'Show the keyboard map' },
      { key: '/', description: 'Search' },
      { key: 'L', description: 'Choose the metric definitions' },
      { key: 'z', description: 'Freeze or unfreeze the page' },
    ],
  },
  {
    title: 'Lists',
    keys: [
      { key: 'j', description: 'Next row' },
      { key: 'k', description: 'Previous row' },
      { key: 'gg', description: 'First row' },
      { key: 'G', description: 'Last row' },
      { key: 'Enter', description: 'Open the row', fixed: true },
      { key: 'x', description: 'Select the row' },
      { key: 'X', description: 'Select the rows up to this one' },
      { key: 'Escape', description: 'Clear the selection' },
    ],
  },
  {
    title: 'Rollout',
    keys: [
      { key: 'j', description: 'Next turn' },
      { key: 'k', description: 'Previous turn' },
      { key: 'J', description: 'Next error or deciding reward' },
      { key: 'K', description: 'Previous error or reward' },
      { key: 'h', description: 'Previous sample (left)' },
      { key: 'l', description: 'Next sample (right)' },
      { key: '[', description: 'Previous sample of the group' },
      { key: ']', description: 'Next sample of the group' },
      { key: '{', description: 'Same task, previous step' },
      { key: '}', description: 'Same task, next step' },
      { key: 'n', description: 'Next rollout of the query' },
      { key: 'p', description: 'Previous rollout of the query' },
      { key: 'd', description: 'Compare with the best sample' },
      { key: 'e', description: 'Expand or collapse the row' },
      { key: 'E', description: 'Expand or collapse all rows' },
      { key: 'r', description: 'Show or hide reasoning' },
      { key: 't', description: 'Follow new messages' },
      { key: 'f', description: 'Show only the transcript' },
      { key: 'mod+f', description: 'Find in this rollout' },
      { key: 'mod+p', description: 'Print the whole rollout' },
      { key: 'y', description: 'Copy a link to this message' },
      { key: 'g', description: 'Verdict: good' },
      { key: 'b', description: 'Verdict: bad' },
      { key: 'x', description: 'Verdict: exploit' },
      ...[1, 2, 3, 4, 5].map((score) => ({ key: String(score), description: `Score ${score} of 5` })),
      { key: 'Escape', description: 'Go back' },
    ],
  },
  {
    title: 'Review',
    keys: [
      ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((label) => ({ key: String(label), description: `Label ${label} of the rubric` })),
      { key: 'ArrowLeft', description: 'The left rollout is better' },
      { key: 'ArrowRight', description: 'The right rollout is better' },
      { key: '=', description: 'Both rollouts are equally good' },
      { key: 'n', description: 'Skip the item' },
      { key: 'u', description: 'Go back to the previous item' },
      { key: 'c', description: 'Write a comment' },
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
