import type { RolloutRow } from '@palestra/protocol';
import { useMemo } from 'react';
import uPlot from 'uplot';
import { formatCount, formatReward } from '../format/number.ts';
import { token } from '../theme/theme.ts';
import { axes, Chart, ChartPanel } from './Chart.tsx';
import { histogram } from './histogram.ts';

const height = 136;
const shortReward = (value: number) => formatReward(value, { digits: Number.isInteger(value) ? 0 : 2 });

function ByStep({ rows }: { rows: RolloutRow[] }) {
  const steps = useMemo(() => {
    const sums = new Map<number, { sum: number; n: number }>();
    for (const { step, reward } of rows) {
      if (step === null || reward === null) continue;
      const at = sums.get(step) ?? { sum: 0, n: 0 };
      sums.set(step, { sum: at.sum + reward, n: at.n + 1 });
    }
    return [...sums].toSorted(([a], [b]) => a - b).map(([step, { sum, n }]) => ({ step, mean: sum / n, n }));
  }, [rows]);
  const data = useMemo<uPlot.AlignedData>(() => [steps.map((at) => at.step), steps.map((at) => at.mean)], [steps]);
  const options = () => ({
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { time: false } },
    axes: axes((value) => (Number.isInteger(value) ? String(value) : ''), shortReward),
    series: [{}, { stroke: token('good'), width: 1.5, points: { show: steps.length < 40, size: 5 } }],
  });
  const last = steps.at(-1);
  return (
    <ChartPanel
      title="Is the reward moving?"
      explain="Mean reward of the scored rollouts of each step, step as uploaded"
      note="mean reward by step"
      table={{
        heads: ['step', 'mean', 'n'],
        rows: steps.map((at) => [String(at.step), formatReward(at.mean, { digits: 3 }), formatCount(at.n)]),
      }}
    >
      <Chart
        options={options}
        data={data}
        height={height}
        label={`Mean reward over ${steps.length} steps, last ${formatReward(last?.mean)}`}
      />
    </ChartPanel>
  );
}

function Distribution({ rows }: { rows: RolloutRow[] }) {
  const rewards = useMemo(() => rows.map((row) => row.reward).filter((reward) => reward !== null), [rows]);
  const { edges, counts, width } = useMemo(() => histogram(rewards), [rewards]);
  const data = useMemo<uPlot.AlignedData>(() => [edges.map((edge) => edge + width / 2), counts], [edges, counts, width]);
  const options = () => ({
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, range: [edges[0] ?? 0, (edges.at(-1) ?? 0) + width] as [number, number] },
      y: { range: (_: uPlot, __: number, max: number) => [0, Math.max(1, max * 1.05)] as [number, number] },
    },
    axes: axes(shortReward, (value) => (Number.isInteger(value) ? formatCount(value) : '')),
    series: [
      {},
      { fill: token('good'), stroke: token('good'), width: 0, points: { show: false }, paths: uPlot.paths.bars!({ size: [0.86, 40] }) },
    ],
  });
  return (
    <ChartPanel
      title="Where do rewards sit?"
      explain="Rollouts by total reward (sum of the message rewards); rollouts without a reward are left out"
      note={`n ${formatCount(rewards.length)}, bins of ${formatReward(width)}`}
      table={{
        heads: ['reward from', 'rollouts'],
        rows: edges.map((edge, i) => [formatReward(edge), formatCount(counts[i])]),
      }}
    >
      {rewards.length === 0 ? (
        <p className="text-ink-3">No rollout of this run carries a reward. Log it with the tool result: rollout.log(…, reward=…).</p>
      ) : (
        <Chart options={options} data={data} height={height} label={`Histogram of ${rewards.length} rewards`} />
      )}
    </ChartPanel>
  );
}

/** Reward by step when the run has at least three, else how the rewards are distributed. */
export function RewardChart({ rows }: { rows: RolloutRow[] }) {
  const steps = useMemo(() => new Set(rows.map((row) => row.step).filter((step) => step !== null)).size, [rows]);
  return steps >= 3 ? <ByStep rows={rows} /> : <Distribution rows={rows} />;
}
