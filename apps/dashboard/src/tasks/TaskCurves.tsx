import { clusteredProportion } from '@palestra/metrics';
import type { RolloutRow, RunTask } from '@palestra/protocol';
import { useMemo, useState } from 'react';
import { type ChartContext, ChartContextProvider } from '../charts/context.ts';
import { columnEdges } from '../charts/draw.ts';
import { LineChart } from '../charts/LineChart.tsx';
import { Panel, Readout } from '../charts/Panel.tsx';
import type { Hover } from '../charts/Plot.tsx';
import { formatCount, formatReward, UNKNOWN } from '../format/number.ts';
import { formatAxis } from '../overview/figures.ts';
import { useRun } from '../run/context.ts';
import { hasInferredSteps } from '../run/Step.tsx';

interface Figures {
  title: string;
  name: string;
  formula: string;
  values: readonly (number | null)[];
  low: readonly (number | null)[];
  high: readonly (number | null)[];
  y: 'unit' | 'fit';
  colour: string;
  dots?: readonly { x: number; y: number }[];
}

/** Reward and solve rate of a task at each of its visits. `rollouts`: all of its rollouts, else null. A click on a step chooses it. */
export function TaskCurves({
  task,
  rollouts,
  onStep,
}: {
  task: RunTask;
  rollouts: readonly RolloutRow[] | null;
  onStep: (step: number | undefined) => void;
}) {
  const { run } = useRun();
  const inferred = hasInferredSteps(run);
  const context = useMemo<ChartContext>(() => {
    const edges = columnEdges(task.step);
    return {
      axis: {
        kind: 'step',
        name: inferred ? 'Step (inferred)' : 'Step',
        inferred,
        range: [edges[0]?.[0] ?? 0, edges.at(-1)?.[1] ?? 1],
        format: (x) => (Number.isInteger(x) ? `${inferred ? '~' : ''}${formatCount(x)}` : ''),
      },
      sync: `task-${run.id}`,
      ranged: false,
      onBrush: (from) => onStep(from),
      onClear: () => onStep(undefined),
    };
  }, [task.step, run.id, inferred, onStep]);
  const solve = useMemo(
    () =>
      task.solve.map((rate, i) => clusteredProportion([{ scored: task.scored[i]!, successes: Math.round((rate ?? 0) * task.scored[i]!) }])),
    [task],
  );
  const dots = useMemo(
    () => rollouts?.flatMap(({ step, reward }) => (step === null || reward === null ? [] : [{ x: step, y: reward }])) ?? [],
    [rollouts],
  );
  const curves: Figures[] = [
    {
      title: 'Does its reward improve?',
      name: 'Mean reward',
      formula: 'mean reward of the scored rollouts of a step; band: mean ± t(n−1, .975)·s/√n; dots: rollouts',
      values: task.reward.mean,
      low: task.reward.low,
      high: task.reward.high,
      y: 'fit',
      colour: 'hue-1',
      dots,
    },
    {
      title: 'Is it solved more often?',
      name: 'Solve rate',
      formula: 'successes / scored rollouts of a step; band: 95 % interval of Wilson',
      values: task.solve,
      low: solve.map((each) => each?.low ?? null),
      high: solve.map((each) => each?.high ?? null),
      y: 'unit',
      colour: 'good',
    },
  ];
  if (task.step.length === 0)
    return <p className="p-4 text-ink-2">The steps of this task are unknown. Send current_step in rollout_info to see its curves.</p>;
  return (
    <ChartContextProvider value={context}>
      {curves.map((figures) => (
        <Curve key={figures.name} task={task} figures={figures} onStep={onStep} />
      ))}
    </ChartContextProvider>
  );
}

function Curve({ task, figures, onStep }: { task: RunTask; figures: Figures; onStep: (step: number) => void }) {
  const { title, name, formula, values, low, high, y, colour, dots } = figures;
  const [hover, setHover] = useState<Hover | null>(null);
  const lines = useMemo(() => [{ name, values, colour }], [name, values, colour]);
  const bands = useMemo(() => [{ low, high, colour, alpha: 0.18 }], [low, high, colour]);
  const hollow = useMemo(() => task.received.map((n, i) => task.scored[i]! < n), [task]);
  const { step: steps, scored, received } = task;
  const at = hover && hover.index < steps.length ? hover.index : steps.length - 1;
  const interval = (i: number) =>
    typeof low[i] === 'number' && typeof high[i] === 'number' ? `${formatReward(low[i])} to ${formatReward(high[i])}` : UNKNOWN;
  const n = (i: number) => `${formatCount(scored[i])} of ${formatCount(received[i])}`;
  return (
    <Panel
      title={title}
      definitions={[{ name, formula, notes: ['Effective rollouts; a hollow mark leaves out rollouts without a reward'] }]}
      readout={
        <Readout
          at={`step ${steps[at] ?? UNKNOWN}`}
          values={[
            [name, formatReward(values[at] ?? null)],
            ['95 %', interval(at)],
            ['n', n(at)],
          ]}
        />
      }
      table={() => ({
        heads: ['Step', name, '95 %', 'n'],
        rows: steps.map((step, i) => [formatCount(step), formatReward(values[i] ?? null), interval(i), n(i)]),
      })}
      missing={values.every((value) => value === null) ? <p>No rollout of this task has a reward.</p> : undefined}
      height={150}
    >
      <LineChart
        name={title}
        label={`${title} ${name}: ${formatReward(values[0] ?? null)} at step ${steps[0]}, ${formatReward(values.at(-1) ?? null)} at step ${steps.at(-1)}`}
        x={steps}
        steps={steps}
        lines={lines}
        bands={bands}
        hollow={hollow}
        {...(dots && { dots })}
        marked
        formatY={(value) => formatAxis('', value)}
        y={y}
        height={150}
        onHover={setHover}
        onPick={({ index }) => steps[index] !== undefined && onStep(steps[index])}
      />
    </Panel>
  );
}
