import { useRouter } from '@tanstack/react-router';
import { useCallback, useEffect, useMemo, useState } from 'react';

/** What lists of a page keep for one entry of the browser's history. */
export interface HistoryEntry {
  address: string;
  /** Identifies the reading of the lists. */
  snapshot: string;
  /** Values that lists restore: scroll positions in px, the number of rollouts of the run. */
  saved: Map<string, number>;
}
const entries = new Map<number, HistoryEntry>();
let readings = 0;
/** A counter: a page over plain HTTP has no `crypto.randomUUID`. */
const newSnapshot = (): string => String((readings += 1));
let subscribed = false;

/**
 * The stored values of the current history entry. Back and Forward restore them; a new visit to the same page starts with empty values.
 * `address` identifies the list: another address starts with empty values, too.
 */
export function useHistoryEntry(address: string): HistoryEntry {
  const router = useRouter();
  useEffect(() => {
    if (subscribed) return;
    subscribed = true;
    router.history.subscribe(({ location, action }) => {
      if (action.type !== 'PUSH') return;
      for (const at of entries.keys()) if (at >= location.state.__TSR_index) entries.delete(at);
    });
  }, [router]);
  return useMemo(() => {
    // Read only when the address changes: during a navigation the router is at the next entry while this page is still shown.
    const index = router.state.location.state.__TSR_index;
    const stored = entries.get(index);
    if (stored?.address === address) return stored;
    const entry: HistoryEntry = { address, snapshot: newSnapshot(), saved: new Map() };
    entries.set(index, entry);
    return entry;
  }, [router, address]);
}

/** A list is read once per visit and again on `reload`. `snapshot` identifies the reading. */
export function useReadings(address: string): { snapshot: string; reload: () => void } {
  const [reloads, setReloads] = useState(0);
  const { snapshot } = useHistoryEntry(JSON.stringify([address, reloads]));
  return { snapshot, reload: useCallback(() => setReloads((before) => before + 1), []) };
}

/** Reloads an empty list as soon as rows arrive (`arrived`): no row on the page can move. */
export function useFirstRows(arrived: boolean, reload: () => void): void {
  useEffect(() => {
    if (arrived) reload();
  }, [arrived, reload]);
}
