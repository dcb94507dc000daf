import { useRouter, useRouterState } from '@tanstack/react-router';
import { useEffect, useMemo } from 'react';

/** Where the reader was in one entry of the browser's history. */
interface Place {
  address: string;
  /** Names the state of the run that the entry's lists show. */
  snapshot: string;
  /** Scroll position of each list, px. */
  tops: Map<string, number>;
}
const places = new Map<number, Place>();
let watching = false;

/**
 * The place of this entry of the history: Back and Forward find it as it was left, a new visit of the same address starts anew. `address`:
 * what makes the list another one.
 */
export function usePlace(address: string): Place {
  const router = useRouter();
  const index = useRouterState({ select: (state) => state.location.state.__TSR_index });
  useEffect(() => {
    if (watching) return;
    watching = true;
    router.history.subscribe(({ location, action }) => {
      if (action.type !== 'PUSH') return;
      for (const at of places.keys()) if (at >= location.state.__TSR_index) places.delete(at);
    });
  }, [router]);
  return useMemo(() => {
    const kept = places.get(index);
    if (kept?.address === address) return kept;
    const place: Place = { address, snapshot: crypto.randomUUID(), tops: new Map() };
    places.set(index, place);
    return place;
  }, [index, address]);
}
