import type { RunMove } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import type { PlotMark } from '../../charts/PlotMarks.tsx';
import { movesQuery } from '../../data/run-queries.ts';
import { useRun } from '../../run/context.ts';
import type { Curves } from '../curves.ts';

/** The step in the address whose change is explained, and how to choose another one. */
export function useWhy(): { why: number | undefined; explain: (step: number | undefined) => void } {
  const { why } = useSearch({ from: '/$org/runs/$run/' });
  const navigate = useNavigate();
  const explain = useCallback(
    (step: number | undefined) => void navigate({ to: '.', search: (old: object) => ({ ...old, why: step }) as never, replace: true }),
    [navigate],
  );
  return { why, explain };
}

const fell = ({ difference }: Pick<RunMove, 'difference'>) => difference < 0;

/** Marks of the steps at which the reward moved, for the chart of these curves. */
export function useMoveMarks({ steps, x }: Curves, isWindow: boolean): PlotMark[] {
  const { run, filter } = useRun();
  const { why, explain } = useWhy();
  const { data } = useQuery({ ...movesQuery(run.id, filter), enabled: !isWindow });
  return useMemo(() => {
    if (isWindow || !data) return [];
    const places = new Map(steps.map((step, i) => [step, x[i]!]));
    return data.moves.flatMap((move) => {
      const at = places.get(move.step);
      if (at === undefined) return [];
      return [
        {
          x: at,
          label: move.text,
          glyph: fell(move) ? '▼' : '▲',
          colour: fell(move) ? 'bad' : 'good',
          isOpen: why === move.step,
          onPick: () => explain(why === move.step ? undefined : move.step),
        },
      ];
    });
  }, [data, steps, x, isWindow, why, explain]);
}
