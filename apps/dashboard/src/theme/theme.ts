import { useSyncExternalStore } from 'react';

export type Theme = 'light' | 'dark';
const storageKey = 'palestra.theme';
const listeners = new Set<() => void>();
const root = document.documentElement;

const current = (): Theme => (root.dataset['theme'] === 'dark' ? 'dark' : 'light');

function apply(theme: Theme): void {
  root.dataset['theme'] = theme;
  for (const listener of listeners) listener();
}

function stored(): string | null {
  try {
    return localStorage.getItem(storageKey);
  } catch {
    return null;
  }
}

// The system's choice is followed until the reader makes one.
const systemDark = matchMedia('(prefers-color-scheme: dark)');
root.dataset['theme'] = stored() ?? (systemDark.matches ? 'dark' : 'light');
systemDark.addEventListener('change', (event) => {
  if (stored() === null) apply(event.matches ? 'dark' : 'light');
});

export function switchTheme(): void {
  const theme = current() === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem(storageKey, theme);
  } catch {
    // Then the choice lasts as long as the page.
  }
  apply(theme);
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, current);
}

/** The value of a token of tokens.css, for canvas drawing. */
export const token = (name: string): string => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
