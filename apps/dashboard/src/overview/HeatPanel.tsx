import type { RunHeatmap } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { binAt, HeatChart, HeatLegend, mostOf } from '../charts/HeatChart.tsx';
import { binClauses, shownHeat } from '../charts/heat.ts';
import { Panel, Readout } from '../charts/Panel.tsx';
import type { Hover } from '../charts/Plot.tsx';
import { heatmapQuery } from '../data/run-queries.ts';
import { formatCount, formatReward } from '../format/number.ts';
import { useRun } from '../run/context.ts';
import { columnsOn } from './curves.ts';
import { formatAxis } from './figures.ts';
import { useOverview } from './context.ts';
import { StepLink } from './StepLink.tsx';

const definitions = [
  {
    name: 'Rollouts by step and reward',
    formula: 'scored rollouts of the step with a total reward in the bin; a bin includes its edge away from zero: (.40, .44]',
    notes: ['Unscored rollouts are not counted', 'Empty bins above the largest reward are not shown'],
  },
];
const title = 'How are rewards distributed?';
const bounds = (low: number, high: number) =>
  low < 0
    ? `[${formatReward(low)}, ${formatReward(high)}${high > 0 ? ']' : ')'}`
    : `${low === 0 ? '[' : '('}${formatReward(low)}, ${formatReward(high)}]`;

/** A heatmap of steps and bins of reward. A click on a cell opens its rollouts. */
export function HeatPanel() {
  const { run, filter } = useRun();
  const heat = useQuery(heatmapQuery(run.id, { ...filter, y: 'reward', bins: 50 }));
  if (heat.data) return <Heat answer={heat.data} />;
  return (
    <Panel
      title={title}
      definitions={definitions}
      readout={null}
      table={() => ({ heads: [], rows: [] })}
      missing={heat.error ? <span>Loading failed: {heat.error.message}</span> : undefined}
    >
      <div aria-busy="true" className="skeleton h-full" />
    </Panel>
  );
}

function Heat({ answer }: { answer: RunHeatmap }) {
  const { nameOf, open, main, isWindow } = useOverview();
  const [hover, setHover] = useState<Hover | null>(null);
  const { edges, counts } = useMemo(() => shownHeat(answer), [answer]);
  const most = useMemo(() => mostOf(counts), [counts]);
  const { from, to, x } = useMemo(() => columnsOn(answer, main, isWindow), [answer, main, isWindow]);
  const names = from.map((step, i) => nameOf(step, x[i]!));
  const empty = most === 0;
  const at = hover && hover.index < counts.length ? hover.index : counts.length - 1;
  const bin = hover?.y === undefined || hover.y === null ? null : binAt(edges, hover.y);
  const total = (column: number) => (counts[column] ?? []).reduce((a, b) => a + b, 0);
  const values =
    bin === null
      ? ([['Scored rollouts', formatCount(total(at))]] as const)
      : ([
          [
            `Reward ${bounds(edges[bin]!, edges[bin + 1]!)}`,
            `${formatCount(counts[at]?.[bin] ?? 0)} of ${formatCount(total(at))} rollouts`,
          ],
        ] as const);
  const filled = edges.slice(0, -1).flatMap((_edge, i) => (counts.some((column) => column[i]! > 0) ? [i] : []));
  return (
    <Panel
      title={title}
      definitions={definitions}
      note={empty ? null : <HeatLegend most={most} of="rollouts" />}
      readout={empty ? null : <Readout at={names[at]!} values={values} />}
      missing={
        empty ? (
          <>
            <span>No rollout has a reward.</span>
            <span className="label">Log the reward with its message: rollout.log(ToolResult(…), reward=1.0)</span>
          </>
        ) : undefined
      }
      table={() => ({
        heads: ['Step', ...filled.map((i) => bounds(edges[i]!, edges[i + 1]!)), 'n'],
        rows: counts.map((column, i) => [
          <StepLink key="step" from={from[i]!} to={to[i]!} x={x[i]!} />,
          ...filled.map((one) => formatCount(column[one])),
          formatCount(total(i)),
        ]),
      })}
    >
      <HeatChart
        name={title}
        label={`${title} ${counts.length} steps by ${edges.length - 1} bins of reward, at most ${most} rollouts per cell.`}
        x={x}
        from={from}
        to={to}
        edges={edges}
        counts={counts}
        formatY={(value) => formatAxis('', value)}
        onHover={setHover}
        {...(open && {
          onPick: (cell: { column: number; bin: number }) =>
            open(from[cell.column]!, to[cell.column]!, binClauses('reward', answer.edges, edges[cell.bin]!, edges[cell.bin + 1]!)),
        })}
      />
    </Panel>
  );
}
