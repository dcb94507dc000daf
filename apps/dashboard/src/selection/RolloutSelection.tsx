import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { rolloutCountQuery } from '../data/selection.ts';
import { formatCount } from '../format/number.ts';
import { useRun } from '../run/context.ts';
import type { Chosen } from './selection.ts';
import { SelectionBar } from './SelectionBar.tsx';
import type { Rows } from './useRowSelection.ts';

/** The selection of a list of rollouts. `q`: the query of the list; `more`: whether it has more than the chosen row. */
export function RolloutSelection<Row extends { id: string }>({ selection, q, more }: { selection: Rows<Row>; q: string; more: boolean }) {
  const { run } = useRun();
  const { chosen: rows, everything, chooseEverything } = selection;
  // Counted when the first row is chosen, so that the button can name the number.
  const any = everything !== null || rows.length > 0;
  const count = useQuery({ ...rolloutCountQuery(run.id, q), enabled: any }).data;
  const ids = rows.map(({ id }) => id).join(',');
  const chosen = useMemo<Chosen>(
    () => (everything ? { kind: 'query', q, ...everything } : { kind: 'rollouts', ids: ids.split(',') }),
    [everything, q, ids],
  );
  if (!any) return null;
  const all = count && { count: count.count, isExact: count.count_is === 'exact', asOf: count.as_of };
  const isAll = everything !== null;
  return (
    <SelectionBar
      text={
        isAll ? `All ${formatCount(everything.count)}${everything.isExact ? '' : '+'} selected` : `${formatCount(rows.length)} selected`
      }
      chosen={chosen}
      offer={
        !isAll &&
        more &&
        all &&
        all.count !== rows.length && (
          <button type="button" className="link" onClick={() => chooseEverything(all)}>
            Select all {formatCount(all.count)}
            {all.isExact ? '' : '+'} that match {q === '' ? 'the run' : 'this query'}
          </button>
        )
      }
      onClear={selection.clear}
    />
  );
}
