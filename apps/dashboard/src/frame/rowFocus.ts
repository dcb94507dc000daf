import type { RefObject } from 'react';

/** Moves the focus between the `[data-row]` elements of a list. They are links or buttons, so Enter opens them. */
export function useRowFocus(list: RefObject<HTMLElement | null>): (step: number) => void {
  return (step) => {
    const rows = [...(list.current?.querySelectorAll<HTMLElement>('[data-row]') ?? [])];
    const at = rows.indexOf(document.activeElement as HTMLElement);
    const next = rows[at === -1 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step))];
    next?.focus();
  };
}
