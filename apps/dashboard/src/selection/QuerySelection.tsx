import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { rolloutCountQuery } from '../data/selection.ts';
import { formatCount, plural } from '../format/number.ts';
import { useRun } from '../run/context.ts';
import { type Chosen, countOf } from './selection.ts';
import { SelectionBar } from './SelectionBar.tsx';
import type { Rows } from './useRowSelection.ts';

interface Props<Row> {
  selection: Rows<Row>;
  /** The rows in the singular: `group`. */
  noun: string;
  /** The query for the rollouts of some rows; null if it would be too long. */
  q: (rows: readonly Row[]) => string | null;
  /** The loaded rows. */
  all: readonly Row[];
}

/** The selection of a list of groups or tasks: its actions apply to their rollouts. */
export function QuerySelection<Row>({ selection, noun, q: queryOf, all }: Props<Row>) {
  const { run } = useRun();
  const { chosen: rows } = selection;
  const q = rows.length === 0 ? null : queryOf(rows);
  const count = useQuery({ ...rolloutCountQuery(run.id, q ?? ''), enabled: q !== null }).data;
  const chosen = useMemo<Chosen | null>(
    () => (q === null || !count ? null : { kind: 'query', q, count: count.count, isExact: count.count_is === 'exact', asOf: count.as_of }),
    [q, count],
  );
  if (rows.length === 0) return null;
  const tooMany = q === null ? `${plural(rows.length, noun)} are too many for a query. Select fewer` : null;
  return (
    <SelectionBar
      text={`${plural(rows.length, noun)} selected${chosen ? `, ${formatCount(countOf(chosen))}${count?.count_is === 'exact' ? '' : '+'} rollouts` : ''}`}
      chosen={chosen}
      problem={tooMany}
      offer={
        rows.length < all.length && (
          <button type="button" className="link" onClick={() => selection.chooseRows(all)}>
            Select all {plural(all.length, `loaded ${noun}`)}
          </button>
        )
      }
      onClear={selection.clear}
    />
  );
}
