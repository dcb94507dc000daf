import { useLayoutEffect, useRef } from 'react';
import { commandOf } from './keymap.ts';

const SECOND_KEY_MS = 300;
/** Commands that a held key repeats. Others, such as verdicts and the answers of a review, act once. */
const REPEATED = new Set(['j', 'k', 'J', 'K', 'h', 'l', '[', ']', '{', '}']);
/** A checkbox needs only Space, so the keys of the page stay active on it. */
const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches('input:not([type="checkbox"]), textarea, select'));
/** Dialogs and open menus have their own keys. */
const isOverlayOpen = () => document.querySelector('dialog[open], [role="menu"][data-state="open"]') !== null;

/** `mod+k` for Ctrl-K and ⌘K, otherwise `KeyboardEvent.key`; null with Alt. */
export function nameOf(event: Pick<KeyboardEvent, 'key' | 'altKey' | 'ctrlKey' | 'metaKey'>): string | null {
  if (event.altKey) return null;
  if (event.ctrlKey || event.metaKey) return `mod+${event.key.toLowerCase()}`;
  return event.key;
}

/**
 * Binds commands to their default keys (frame/keymap.ts), which the reader can change: `KeyboardEvent.key`, `gg` for two g within 300 ms (a
 * single `g` waits as long), `mod+f` for Ctrl-F or ⌘F. Inactive while typing, in menus and in dialogs. The browser handles other keys.
 */
export function useKeys(commands: Record<string, () => void>): void {
  const latest = useRef(commands);
  // A layout effect, so that keys work as soon as the page is painted.
  useLayoutEffect(() => {
    latest.current = commands;
  });
  useLayoutEffect(() => {
    let firstG = -SECOND_KEY_MS;
    let single: ReturnType<typeof setTimeout> | undefined;
    const endWait = () => {
      clearTimeout(single);
      single = undefined;
    };
    const onKey = (event: KeyboardEvent) => {
      const key = nameOf(event);
      if (key === null || event.defaultPrevented || isOverlayOpen() || (isTyping(event.target) && !key.startsWith('mod+'))) return;
      let name = commandOf(key);
      if (event.repeat && name !== null && !REPEATED.has(name)) {
        if (latest.current[name]) event.preventDefault();
        return;
      }
      // A single g before another key does not wait: that key may leave the page.
      if (single !== undefined && name !== 'g') {
        endWait();
        firstG = -SECOND_KEY_MS;
        latest.current['g']?.();
      }
      if (name === 'g' && latest.current['gg']) {
        endWait();
        if (event.timeStamp - firstG < SECOND_KEY_MS) name = 'gg';
        else
          single = setTimeout(() => {
            endWait();
            latest.current['g']?.();
          }, SECOND_KEY_MS);
        firstG = name === 'gg' ? -SECOND_KEY_MS : event.timeStamp;
        if (name === 'g') return;
      }
      const command = name === null ? undefined : latest.current[name];
      if (!command) return;
      event.preventDefault();
      command();
    };
    addEventListener('keydown', onKey);
    return () => {
      removeEventListener('keydown', onKey);
      clearTimeout(single);
    };
  }, []);
}
