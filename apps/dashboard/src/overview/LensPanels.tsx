import type { Lens } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { type ChartX, type Kpi, seriesQuery } from '../data/run-queries.ts';
import { useRun } from '../run/context.ts';
import { lensNames } from '../run/LensMenu.tsx';
import { curvesOf } from './curves.ts';
import { CurvePanel } from './CurvePanel.tsx';
import { lensMetrics } from './lens-metrics.ts';
import { useOverview } from './context.ts';

/** The figures of a trainer under the names that it prints, one chart each. */
export function LensPanels({ lens, kpis, x }: { lens: Lens; kpis: readonly Kpi[]; x: ChartX }) {
  const { run, filter } = useRun();
  const metrics = useMemo(() => lensMetrics(lens, kpis), [lens, kpis]);
  const { data } = useQuery({ ...seriesQuery(run.id, { ...filter, lens, m: metrics, x }), enabled: metrics.length > 0 });
  const { phase } = useOverview();
  const curves = useMemo(() => curvesOf(data, phase), [data, phase]);
  const panels = useMemo(
    () =>
      metrics.map((m) => {
        const members = curves.of(m);
        return {
          m,
          title: members.length === 1 ? members[0]!.key : m,
          entries: members.map((series, i) => ({
            name: members.length === 1 ? 'Value' : series.key,
            series,
            colour: `hue-${1 + (i % 8)}`,
          })),
        };
      }),
    [curves, metrics],
  );
  return panels.map(({ m, title, entries }) => (
    <CurvePanel
      key={m}
      title={title}
      curves={curves}
      entries={entries}
      y="fit"
      note={<span className="label">As {lensNames[lens]}</span>}
      missing={
        <>
          <span>Not in the upload.</span>
          <span className="label">Palestra does not approximate figures of a trainer.</span>
        </>
      }
    />
  ));
}
