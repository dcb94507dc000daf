import { useNavigate } from '@tanstack/react-router';
import { useCallback, useEffect, useRef } from 'react';

const PATIENCE_MS = 120;

/**
 * Paper shows what the page holds, and the page holds the rows on the screen: to print a rollout whole, all of its rows are shown first
 * (`print` in the address). `begin` does that; `ready`, called once they have their texts, prints when it was asked for, and goes back
 * to the reader's place.
 */
export function usePrinting(shown: boolean, say: (text: string) => void): { begin: () => void; ready: () => void } {
  const navigate = useNavigate();
  const asked = useRef(false);
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
      if (asked.current) show(undefined);
      asked.current = false;
    };
    addEventListener('afterprint', after);
    return () => removeEventListener('afterprint', after);
  }, [show]);
  const ready = useCallback(() => {
    // After the frame that shows the last rows.
    if (asked.current) setTimeout(() => window.print(), PATIENCE_MS);
  }, []);
  const begin = () => {
    if (shown) return window.print();
    asked.current = true;
    say('reading all messages, then printing');
    show(true);
  };
  return { begin, ready };
}
