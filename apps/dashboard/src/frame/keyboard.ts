import { useLayoutEffect, useRef } from 'react';
import { commandOf } from './keymap.ts';

const SECOND_KEY_MS = 300;
/** A box is ticked by Space alone: whoever has just done so goes on with the keys of the page. */
const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches('input:not([type="checkbox"]), textarea, select'));
/** An open menu has its own keys. */
const busy = () => document.querySelector('dialog[open], [role="menu"][data-state="open"]') !== null;

/** `mod+k` for Ctrl-K and ⌘K, else `KeyboardEvent.key`; null when the key is not ours. */
function nameOf(event: KeyboardEvent): string | null {
  if (event.altKey) return null;
  if (event.ctrlKey || event.metaKey) return `mod+${event.key.toLowerCase()}`;
  return event.key;
}

/**
 * Commands of a page, by their default key (frame/keymap.ts), which a reader may have changed: `KeyboardEvent.key`, `gg` for two g within
 * 300 ms (a single `g` waits as long), `mod+f` for Ctrl-F or ⌘F. Off while typing, in menus and dialogs. Keys that no command has stay the
 * browser's own.
 */
export function useKeys(commands: Record<string, () => void>): void {
  const latest = useRef(commands);
  // Before anything is painted: a key is heard as soon as a reader sees what it is for.
  useLayoutEffect(() => {
    latest.current = commands;
  });
  useLayoutEffect(() => {
    let firstG = -SECOND_KEY_MS;
    let single: ReturnType<typeof setTimeout> | undefined;
    const onKey = (event: KeyboardEvent) => {
      const key = nameOf(event);
      if (key === null || event.defaultPrevented || busy() || (typing(event.target) && !key.startsWith('mod+'))) return;
      let name = commandOf(key);
      if (name === 'g' && latest.current['gg']) {
        clearTimeout(single);
        if (event.timeStamp - firstG < SECOND_KEY_MS) name = 'gg';
        else single = setTimeout(() => latest.current['g']?.(), SECOND_KEY_MS);
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
