import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { type ChartX, seriesQuery } from '../data/run-queries.ts';
import { useRun } from '../run/context.ts';
import { type Curves, curvesOf } from './curves.ts';
import { CurvePanel } from './CurvePanel.tsx';
import { HowTo } from './HowTo.tsx';
import { ownClauses } from './links.ts';
import { useOverview } from './context.ts';
import { RewardPanel } from './Panels.tsx';

const METRICS = ['reward_p10', 'reward_p25', 'reward_p50', 'reward_p75', 'reward_p90', 'reward_mean', 'pass@1', 'turns'] as const;
const MAX_FACETS = 8;

/** Charts per environment, for a run with several environments. */
export function EnvironmentPanels({ x }: { x: ChartX }) {
  const run = useRun();
  const { phase } = useOverview();
  const { data } = useQuery(seriesQuery(run.run.id, { ...run.filter, lens: undefined, m: METRICS, by: 'env', x }));
  const all = useMemo(() => curvesOf(data, phase), [data, phase]);
  const environments = useMemo(() => [...new Set(all.of('reward_mean').flatMap(({ env }) => env ?? []))], [all]);
  const facets = useMemo(
    () =>
      environments.slice(0, MAX_FACETS).map((env) => ({
        env,
        curves: curvesOf(data && { ...data, series: data.series.filter((series) => series.env === env) }, phase),
      })),
    [data, environments, phase],
  );
  if (environments.length < 2) return null;
  return (
    <section aria-labelledby="by-environment">
      <h2 id="by-environment" className="strong border-b border-line px-3 py-[6px]">
        By environment
      </h2>
      <div className="chart-grid">
        {facets.map(({ env, curves }) => (
          <RewardPanel key={env} curves={curves} title={env} env={env} clauses={ownClauses(run, { env })} />
        ))}
        <Comparison title="How often is each environment solved?" m="pass@1" curves={all} y="unit" />
        <Comparison title="How long are the episodes of each environment?" m="turns" curves={all} y="zero" />
      </div>
    </section>
  );
}

function Comparison({ title, m, curves, y }: { title: string; m: string; curves: Curves; y: 'unit' | 'zero' }) {
  const entries = useMemo(
    () =>
      curves
        .of(m)
        .map((series, i) => ({ name: series.env?.split('/').at(-1) ?? 'Unknown', series, colour: `hue-${1 + (i % 8)}`, labelled: true })),
    [curves, m],
  );
  return (
    <CurvePanel title={title} curves={curves} entries={entries} y={y} missing={<HowTo missing={`No ${m}.`} send="rollout.log(…)" />} />
  );
}
