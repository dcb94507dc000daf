import type { RunSeries, RunSteps } from '@palestra/protocol';
import { useMemo } from 'react';
import { columnsOn, curvesOf } from './curves.ts';
import { CurvePanel } from './CurvePanel.tsx';
import { type Curve, definitionOf } from './figures.ts';
import { HeatPanel } from './HeatPanel.tsx';
import { useMoveMarks } from './moves/useMoves.ts';
import type { PlotMark } from '../charts/PlotMarks.tsx';
import { useOverview } from './context.ts';
import { StackPanel } from './StackPanel.tsx';
import { interruptedCount, stopShades } from './stops.ts';
import { HowTo } from './HowTo.tsx';
import { sizeNote } from './group-size.ts';

/** Metrics of the canonical charts, read in one request. */
export const CANONICAL = [
  'reward_p10',
  'reward_p25',
  'reward_p50',
  'reward_p75',
  'reward_p90',
  'reward_mean',
  'pass@{k}',
  'solved_none',
  'solved_some',
  'solved_all',
  'turns',
  'calls',
  'tokens_out',
  'tokens_tool',
  'truncated',
  'tool_error',
] as const;

const passColours = ['hue-6', 'hue-1', 'hue-8', 'hue-4', 'hue-7', 'hue-2', 'hue-5', 'hue-3'];
const bands = { outer: 0.12, inner: 0.24 };
const noReward = <HowTo missing="No rollout has a reward." send="rollout.log(ToolResult(text, call_id=…), reward=1.0)" />;

/** Median and mean of the reward over its percentile bands. */
export function RewardPanel({
  curves,
  title,
  clauses,
  env,
  marks,
}: {
  curves: ReturnType<typeof curvesOf>;
  title: string;
  clauses?: string[];
  env?: string | null;
  marks?: readonly PlotMark[];
}) {
  const entries = useMemo(
    () => [
      { name: 'p50', series: curves.of('reward_p50')[0], colour: 'good' },
      { name: 'Mean', series: curves.of('reward_mean')[0], colour: 'ink-3' },
    ],
    [curves],
  );
  const areas = useMemo(
    () => [
      { name: 'p10–90', low: curves.of('reward_p10')[0], high: curves.of('reward_p90')[0], colour: 'good', alpha: bands.outer },
      { name: 'p25–75', low: curves.of('reward_p25')[0], high: curves.of('reward_p75')[0], colour: 'good', alpha: bands.inner },
    ],
    [curves],
  );
  return (
    <CurvePanel
      title={title}
      curves={curves}
      entries={entries}
      bands={areas}
      y="fit"
      missing={noReward}
      {...(clauses && { clauses })}
      {...(env !== undefined && { env })}
      {...(marks && { marks })}
    />
  );
}

/** The charts of canonical figures. */
export function CanonicalPanels({ answer, counts }: { answer: RunSeries; counts: RunSteps | undefined }) {
  const { main, phase, isWindow, groupSize } = useOverview();
  const lines = useMemo(() => linesOf(main, groupSize?.n ?? 0), [main, groupSize]);
  const errors = useMemo(() => errorLines(main, counts, isWindow), [main, counts, isWindow]);
  const marks = useMoveMarks(main, isWindow);
  return (
    <>
      <RewardPanel curves={main} title="Is the reward moving?" marks={marks} />
      <HeatPanel />
      <CurvePanel
        title="How often do k tries solve a task?"
        {...(groupSize &&
          groupSize.groups < groupSize.of && {
            note: (
              <span className="label whitespace-nowrap" title={sizeNote(groupSize)}>
                Groups of {groupSize.n}
              </span>
            ),
          })}
        curves={main}
        entries={lines.pass}
        y="unit"
        missing={
          <HowTo
            missing="No groups. pass@k needs several rollouts of one prompt."
            send={'metadata={"group_id": prompt_id, "sample_idx": k}'}
          />
        }
      />
      <SolvedPanel />
      <CurvePanel
        title="How long are the episodes?"
        curves={main}
        entries={lines.turns}
        y="zero"
        missing={<HowTo missing="No turns." send="rollout.log(ToolCall(…))" />}
      />
      <CurvePanel
        title="Where do the tokens come from?"
        curves={main}
        entries={lines.tokens}
        y="zero"
        missing={<HowTo missing="No tokens in the upload." send={'metadata={"tokens": {"output": 812, "tool": 240}}'} />}
      />
      <StopsPanel counts={counts} />
      <CurvePanel
        title="What goes wrong?"
        curves={main}
        entries={errors}
        y="zero"
        missing={<HowTo missing="No tool results yet." send="rollout.log(ToolResult(…))" />}
      />
      <EvalPanel answer={answer} show={phase === 'train'} />
    </>
  );
}

/** pass@k up to the most common group size: few groups have more rollouts. */
function linesOf(main: ReturnType<typeof curvesOf>, size: number) {
  const labelled = true;
  return {
    pass: main
      .of('pass@{k}')
      .filter(({ key }) => Number(key.slice('pass@'.length)) <= size)
      .map((series, i) => ({ name: series.key, series, colour: passColours[i % passColours.length]!, labelled })),
    turns: [
      { name: 'Turns', series: main.of('turns')[0], colour: 'hue-1', labelled },
      { name: 'Tool calls', series: main.of('calls')[0], colour: 'hue-5', labelled },
    ],
    tokens: [
      { name: 'Output', series: main.of('tokens_out')[0], colour: 'hue-1', labelled },
      { name: 'Tool', series: main.of('tokens_tool')[0], colour: 'hue-5', labelled },
    ],
  };
}

/** Error rates with different denominators; each formula names its own. */
function errorLines(main: ReturnType<typeof curvesOf>, counts: RunSteps | undefined, isWindow: boolean) {
  const failed: Curve | undefined = counts && {
    key: 'errors',
    formula: 'rollouts that stopped with env_error, infra_error, timeout, aborted or cancelled / rollouts',
    lens: null,
    den: null,
    step: columnsOn(counts, main, isWindow).from,
    value: counts.rollouts.map((rollouts, i) =>
      rollouts === 0 ? null : interruptedCount(Object.fromEntries(counts.stops.map((one) => [one.stop, one.counts[i]!]))) / rollouts,
    ),
    denominator: counts.rollouts,
    of: counts.rollouts,
    provenance: [],
    notes: [],
  };
  return [
    { name: 'Tool errors', series: main.of('tool_error')[0], colour: 'environment', labelled: true },
    { name: 'Truncated', series: main.of('truncated')[0], colour: 'policy', labelled: true },
    { name: 'Interrupted', series: failed, colour: 'infrastructure', labelled: true },
  ];
}

function SolvedPanel() {
  const { main } = useOverview();
  const [none, some, all] = (['none', 'some', 'all'] as const).map((which) => main.of(`solved_${which}`)[0]);
  const layers = useMemo(
    () =>
      none && some && all
        ? [
            { name: 'None', values: main.values(none), colour: 'bad', alpha: 0.6 },
            { name: 'Some', values: main.values(some), colour: 'good', alpha: 0.18 },
            { name: 'All', values: main.values(all), colour: 'good', alpha: 0.75 },
          ]
        : [],
    [main, none, some, all],
  );
  const known = none?.value.some((value) => value !== null) ?? false;
  return (
    <StackPanel
      title="How many groups are solved?"
      definitions={[none, some, all].flatMap((series) => (series ? [definitionOf(series)] : []))}
      x={main.x}
      from={main.steps}
      to={main.steps}
      layers={known ? layers : []}
      wholes={main.denominators(none)}
      unit="groups"
      clausesOf={(layer) =>
        layer === 'None'
          ? ['group.pass:0']
          : layer === 'All'
            ? ['group.pass:1']
            : layer === 'Some'
              ? ['group.pass:>0', 'group.pass:<1']
              : []
      }
      missing={<HowTo missing="No groups yet." send={'metadata={"group_id": prompt_id, "sample_idx": k}'} />}
    />
  );
}

const stopDefinition = {
  name: 'Stop reasons',
  formula: 'rollouts of the step with this reason / rollouts of the step',
  notes: ['All rollouts that were received', '● finished · ▲ policy · ◆ environment · ✕ infrastructure'],
};

function StopsPanel({ counts }: { counts: RunSteps | undefined }) {
  const { main, isWindow } = useOverview();
  const columns = useMemo(() => columnsOn(counts ?? { from: [], to: [] }, main, isWindow), [counts, main, isWindow]);
  const layers = useMemo(() => {
    const ofStop = new Map(counts?.stops.map(({ stop, counts: column }) => [stop, column]));
    return stopShades([...ofStop.keys()]).map(({ stop, colour, alpha }) => ({
      name: stop,
      values: ofStop.get(stop)!.map((count, i) => (counts!.rollouts[i] ? count / counts!.rollouts[i] : null)),
      colour,
      alpha,
    }));
  }, [counts]);
  return (
    <StackPanel
      title="How do rollouts end?"
      definitions={[stopDefinition]}
      {...columns}
      layers={layers}
      wholes={counts?.rollouts ?? []}
      unit="rollouts"
      clausesOf={(layer) => (layer === null ? [] : [`stop:${layer}`])}
      missing={<HowTo missing="No rollouts." send={'metadata={"stop_reason": "finished"}'} />}
    />
  );
}

/** Training and evaluation rewards side by side, if both phases were uploaded. */
function EvalPanel({ answer, show }: { answer: RunSeries; show: boolean }) {
  const both = useMemo(() => curvesOf(answer, null), [answer]);
  const entries = useMemo(
    () =>
      both
        .of('reward_mean')
        .map((series) => ({ name: series.phase, series, colour: series.phase === 'eval' ? 'hue-2' : 'hue-1', labelled: true })),
    [both],
  );
  if (!show || !entries.some(({ name }) => name === 'eval')) return null;
  return <CurvePanel title="Does evaluation improve too?" curves={both} entries={entries} y="fit" missing={noReward} />;
}
