import { useSyncExternalStore } from 'react';
import { store, stored } from './stored.ts';

export type Theme = 'light' | 'dark';
/** `system` follows the setting of the operating system. */
export type ThemeChoice = Theme | 'system';
const storageKey = 'palestra.theme';
const listeners = new Set<() => void>();
const root = document.documentElement;

const current = (): Theme => (root.dataset['theme'] === 'dark' ? 'dark' : 'light');

function apply(theme: Theme): void {
  root.dataset['theme'] = theme;
  for (const listener of listeners) listener();
}

const systemDark = matchMedia('(prefers-color-scheme: dark)');
const choice = (): ThemeChoice => {
  const saved = stored(storageKey);
  return saved === 'light' || saved === 'dark' ? saved : 'system';
};
const themeOf = (chosen: ThemeChoice): Theme => (chosen === 'system' ? (systemDark.matches ? 'dark' : 'light') : chosen);
root.dataset['theme'] = themeOf(choice());
systemDark.addEventListener('change', () => {
  if (choice() === 'system') apply(themeOf('system'));
});

export function chooseTheme(chosen: ThemeChoice): void {
  store(storageKey, chosen === 'system' ? null : chosen);
  apply(themeOf(chosen));
}

export const switchTheme = (): void => chooseTheme(current() === 'dark' ? 'light' : 'dark');

const listen = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};
export const useTheme = (): Theme => useSyncExternalStore(listen, current);
export const useThemeChoice = (): ThemeChoice => useSyncExternalStore(listen, choice);

/** The value of a token of tokens.css, for drawing on a canvas. */
export const token = (name: string): string => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
