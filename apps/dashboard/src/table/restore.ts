import { useRouter } from '@tanstack/react-router';
import { useCallback, useEffect, useMemo, useState } from 'react';

/** Where the reader was in one entry of the browser's history. */
export interface Place {
  address: string;
  /** Names the state of the run that the entry's lists show. */
  snapshot: string;
  /** What its lists left to be found: scroll positions in px, how many rollouts the run had. */
  left: Map<string, number>;
}
const places = new Map<number, Place>();
let watching = false;

/**
 * The place of this entry of the history: Back and Forward find it as it was left, a new visit of the same address starts anew. `address`:
 * what makes the list another one.
 */
export function usePlace(address: string): Place {
  const router = useRouter();
  useEffect(() => {
    if (watching) return;
    watching = true;
    router.history.subscribe(({ location, action }) => {
      if (action.type !== 'PUSH') return;
      for (const at of places.keys()) if (at >= location.state.__TSR_index) places.delete(at);
    });
  }, [router]);
  return useMemo(() => {
    // Read when the address of the page changes, and not before: the router is at the next entry while this page is still shown.
    const index = router.state.location.state.__TSR_index;
    const kept = places.get(index);
    if (kept?.address === address) return kept;
    const place: Place = { address, snapshot: crypto.randomUUID(), left: new Map() };
    places.set(index, place);
    return place;
  }, [router, address]);
}

/** How often a page reads its list: once a visit, and once more whenever the reader asks for it. `snapshot` names the reading. */
export function useReadings(address: string): { snapshot: string; reload: () => void } {
  const [reloads, setReloads] = useState(0);
  const { snapshot } = usePlace(JSON.stringify([address, reloads]));
  return { snapshot, reload: useCallback(() => setReloads((before) => before + 1), []) };
}

/** A list without a row has none that could move: what came first is read at once. */
export function useFirstRows(came: boolean, reload: () => void): void {
  useEffect(() => {
    if (came) reload();
  }, [came, reload]);
}
