import type { ToolSteps } from '@palestra/protocol';
import { printText } from '@palestra/query';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useMemo, useState } from 'react';
import { type Line, LineChart } from '../charts/LineChart.tsx';
import { Panel, Readout } from '../charts/Panel.tsx';
import type { Hover } from '../charts/Plot.tsx';
import { type ChartContext, ChartContextProvider, useChartContext } from '../charts/context.ts';
import { columnEdges } from '../charts/draw.ts';
import { type ToolFigures, toolStepsQuery } from '../data/insights.ts';
import { formatCount, formatShare, UNKNOWN } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import { Loaded } from '../frame/Loaded.tsx';
import { AlertMe } from '../alerts/AlertMe.tsx';
import { useRun } from '../run/context.ts';
import { hasInferredSteps } from '../run/Step.tsx';
import { Arguments } from './Arguments.tsx';

/** One tool: its figures by step, and its calls validated against the published schema. */
export function ToolPanel({
  tool,
  figures,
  within,
  close,
}: {
  tool: string;
  figures: ToolFigures | undefined;
  /** Clauses of the filter of the page. */
  within: string;
  close: () => void;
}) {
  const { org, run, filter } = useRun();
  const steps = useQuery(toolStepsQuery(run.id, tool, filter));
  const rollouts = (clause: string) => ({
    to: '/$org/runs/$run/rollouts' as const,
    params: { org, run: run.name },
    search: { ...filter, q: [within, clause].filter(Boolean).join(' ') },
    className: 'link whitespace-nowrap',
  });
  return (
    <aside aria-label={`Tool ${tool}`} className="flex min-h-0 flex-col border-l border-line">
      <div className="flex h-[36px] flex-none items-center gap-3 border-b border-line px-3">
        <h2 className="mono truncate strong" title={tool}>
          {tool}
        </h2>
        {figures && figures.errors > 0 && <Link {...rollouts(`tool.error:${printText(tool)}`)}>Show where it failed</Link>}
        <Link {...rollouts(`tool:${printText(tool)}`)}>Show rollouts</Link>
        <button type="button" className="button ml-auto" onClick={close}>
          Close
        </button>
      </div>
      <div className="min-h-0 flex-1 overflow-auto">
        {figures?.published === false && (
          <p className="border-b border-line bg-paper-1 px-3 py-2 text-ink-2">
            <span className="text-policy">▲ Unknown name</span>: {figures.unpublished_in.join(', ')}{' '}
            {figures.unpublished_in.length === 1 ? 'publishes' : 'publish'} no tool of this name. It can be a tool of a task; otherwise the
            policy invented the name.
          </p>
        )}
        <Loaded query={steps}>{(data) => <Charts data={data} />}</Loaded>
        <Arguments tool={tool} />
      </div>
    </aside>
  );
}

function Charts({ data }: { data: ToolSteps }) {
  const { run, setFilter, filter } = useRun();
  const inferred = hasInferredSteps(run);
  const chartContext = useMemo<ChartContext>(() => {
    const edges = columnEdges(data.step);
    return {
      axis: {
        kind: 'step',
        name: inferred ? 'Step (inferred)' : 'Step',
        inferred,
        range: [edges[0]?.[0] ?? 0, edges.at(-1)?.[1] ?? 1],
        format: (x) => (Number.isInteger(x) ? `${inferred ? '~' : ''}${formatCount(x)}` : ''),
      },
      sync: `tool-${run.id}`,
      ranged: filter.steps !== undefined,
      onBrush: (from, to) => setFilter({ steps: from === to ? String(from) : `${from}..${to}` }),
      onClear: () => setFilter({ steps: undefined }),
    };
  }, [data.step, run.id, filter.steps, setFilter, inferred]);
  const timed = data.timed.reduce((sum, one) => sum + one, 0);
  const lines = useMemo(() => linesOf(data), [data]);
  if (data.step.length === 0)
    return <p className="px-3 py-2 text-ink-2">No step is known: {formatCount(data.unknown_step)} calls have no step.</p>;
  return (
    <ChartContextProvider value={chartContext}>
      <ToolChart
        title="How often is it called?"
        data={data}
        lines={lines.calls}
        format={formatCount}
        formula="calls of the tool in the rollouts of the step"
        note={data.unknown_step > 0 ? `${formatCount(data.unknown_step)} calls without a known step are excluded` : 'All received rollouts'}
      />
      <ToolChart
        title="How often does it fail?"
        data={data}
        lines={lines.errors}
        format={(value) => formatShare(value, 1)}
        formula="results uploaded as errors / calls"
        note="All received rollouts"
        actions={
          <AlertMe
            run={run.name}
            on={`errors of ${data.tool}`}
            preset={{ subject: 'tool_error', op: 'above', tool: data.tool, environment: filter.env ?? '' }}
          />
        }
      />
      <ToolChart
        title="How long does it take?"
        data={data}
        lines={lines.latency}
        format={formatDuration}
        formula="duration of the calls, measured by the server that ran them; over several environments, weighted by calls"
        note={`${formatCount(timed)} calls have a duration`}
        missing={timed === 0 ? <p>No durations. Only calls of verified rollouts have one.</p> : undefined}
      />
    </ChartContextProvider>
  );
}

const linesOf = (data: ToolSteps): Record<'calls' | 'errors' | 'latency', Line[]> => ({
  calls: [{ name: 'Calls', values: data.calls, colour: 'hue-1' }],
  errors: [{ name: 'Errors', values: data.calls.map((calls, i) => (calls === 0 ? null : data.errors[i]! / calls)), colour: 'environment' }],
  latency: [
    { name: 'p50', values: data.p50_ms, colour: 'hue-1', labelled: true },
    { name: 'p95', values: data.p95_ms, colour: 'hue-5', labelled: true },
  ],
});

interface ToolChartProps {
  title: string;
  data: ToolSteps;
  lines: Line[];
  format: (value: number | null) => string;
  formula: string;
  note: string;
  missing?: ReactNode;
  actions?: ReactNode;
}

function ToolChart({ title, data, lines, format, formula, note, missing, actions }: ToolChartProps) {
  const [hover, setHover] = useState<Hover | null>(null);
  const { axis } = useChartContext();
  const at = hover && hover.index < data.step.length ? hover.index : data.step.length - 1;
  const textOf = (line: Line, i: number) => format(line.values[i] ?? null);
  return (
    <Panel
      title={title}
      definitions={[{ name: lines.map(({ name }) => name).join(', '), formula, notes: [note] }]}
      readout={
        <Readout
          at={`${axis.inferred ? '~' : ''}step ${data.step[at] ?? UNKNOWN}`}
          values={[
            ...lines.map((line) => [line.name, textOf(line, at), lines.length > 1 ? line.colour : ''] as const),
            ['n', `${formatCount(data.calls[at])} calls`],
          ]}
        />
      }
      table={() => ({
        heads: [axis.name, ...lines.map(({ name }) => name), 'All calls'],
        rows: data.step.map((step, i) => [formatCount(step), ...lines.map((line) => textOf(line, i)), formatCount(data.calls[i])]),
      })}
      missing={missing}
      actions={actions}
      height={110}
    >
      <LineChart
        name={title}
        label={`${title} ${lines.map((line) => `${line.name}: ${textOf(line, 0)} at step ${data.step[0]}, ${textOf(line, data.step.length - 1)} at step ${data.step.at(-1)}`).join('. ')}`}
        x={data.step}
        steps={data.step}
        lines={lines}
        formatY={(value) => format(value)}
        y="zero"
        height={110}
        onHover={setHover}
      />
    </Panel>
  );
}
