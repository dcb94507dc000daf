import { useEffect, useRef } from 'react';

const secondKeyMs = 300;
const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/**
 * Single-key commands of a page, by `KeyboardEvent.key` (`gg` for two g within 300 ms). Off while typing, in dialogs, and
 * with Ctrl, Alt or Meta, so that the browser's own keys stay.
 */
export function useKeys(commands: Record<string, () => void>): void {
  const latest = useRef(commands);
  useEffect(() => {
    latest.current = commands;
  });
  useEffect(() => {
    let firstG = 0;
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || typing(event.target)) return;
      if (document.querySelector('dialog[open]')) return;
      let name = event.key;
      if (name === 'g') {
        if (event.timeStamp - firstG < secondKeyMs) name = 'gg';
        firstG = event.timeStamp;
      }
      const command = latest.current[name];
      if (!command) return;
      event.preventDefault();
      command();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}
