import { useCallback, useMemo, useState } from 'react';
import { useKeys } from '../frame/keyboard.ts';
import type { RowSelection } from '../table/DataTable.tsx';
import { toggled } from './selection.ts';

/** All rollouts of a query, as they were counted. */
export interface Everything {
  count: number;
  isExact: boolean;
  asOf: string;
}

export interface Rows<Row> extends RowSelection {
  /** Chosen rows in the order of the list, as they were when they were chosen. */
  chosen: readonly Row[];
  /** Set when everything that matches the query is chosen. */
  everything: Everything | null;
  chooseEverything: (everything: Everything) => void;
  chooseRows: (rows: readonly Row[]) => void;
  clear: () => void;
}

interface State<Row> {
  /** The list that it belongs to. */
  list: string;
  chosen: ReadonlyMap<string, Row>;
  anchor: string | null;
  everything: Everything | null;
}

/** Rows that the reader chose. `list` identifies their list: another list begins without a selection. Escape clears. */
export function useRowSelection<Row>(rows: readonly Row[], keyOf: (row: Row) => string, list: string): Rows<Row> {
  const empty: State<Row> = useMemo(() => ({ list, chosen: new Map(), anchor: null, everything: null }), [list]);
  const [stored, setState] = useState(empty);
  const state = stored.list === list ? stored : empty;
  const clear = useCallback(() => setState(empty), [empty]);
  const toggle = useCallback(
    (key: string, extend: boolean) =>
      setState((old) => {
        const { chosen, anchor, everything } = old.list === list ? old : empty;
        const byKey = new Map(rows.map((row) => [keyOf(row), row]));
        // Everything but this row: the loaded rows become the selection.
        const before = everything ? byKey : chosen;
        const next = toggled(new Set(before.keys()), [...byKey.keys()], key, extend ? anchor : null);
        return {
          list,
          anchor: key,
          everything: null,
          chosen: new Map([...next].map((one) => [one, byKey.get(one) ?? before.get(one)!])),
        };
      }),
    [rows, keyOf, list, empty],
  );
  const chosenRows = useMemo(() => {
    const order = new Map(rows.map((row, at) => [keyOf(row), at]));
    return [...state.chosen].toSorted(([a], [b]) => (order.get(a) ?? Infinity) - (order.get(b) ?? Infinity)).map(([, row]) => row);
  }, [state.chosen, rows, keyOf]);
  const some = state.everything !== null || state.chosen.size > 0;
  useKeys(some ? { Escape: clear } : {});
  return {
    chosen: chosenRows,
    everything: state.everything,
    has: (key) => state.everything !== null || state.chosen.has(key),
    toggle,
    chooseEverything: (everything) => setState({ ...empty, everything }),
    chooseRows: (all) => setState({ ...empty, chosen: new Map(all.map((row) => [keyOf(row), row])) }),
    clear,
  };
}
