import { useNavigate } from '@tanstack/react-router';
import { useCallback, useEffect, useRef } from 'react';

/** Time for the browser to paint the last rows. */
const PAINT_MS = 120;

/**
 * Prints a whole rollout. The page normally has only the visible rows, so `begin` first shows all of them (`print` in the address). Call
 * `ready` when their texts are loaded: it opens the print dialog, and after it the page shows the transcript again.
 */
export function usePrinting(shown: boolean, notify: (text: string) => void): { begin: () => void; ready: () => void } {
  const navigate = useNavigate();
  const requested = useRef(false);
  const show = useCallback(
    (print: true | undefined) =>
      void navigate({
        to: '.',
        search: (old: object) => ({ ...old, print }) as never,
        hash: location.hash.slice(1),
        replace: true,
        hashScrollIntoView: false,
      }),
    [navigate],
  );
  useEffect(() => {
    const after = () => {
      if (requested.current) show(undefined);
      requested.current = false;
    };
    addEventListener('afterprint', after);
    return () => removeEventListener('afterprint', after);
  }, [show]);
  const ready = useCallback(() => {
    if (requested.current) setTimeout(() => window.print(), PAINT_MS);
  }, []);
  const begin = () => {
    if (shown) return window.print();
    requested.current = true;
    notify('Loading all messages for printing');
    show(true);
  };
  return { begin, ready };
}
