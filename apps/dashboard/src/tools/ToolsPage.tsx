import { useQuery } from '@tanstack/react-query';
import { printText } from '@palestra/query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ToolFigures, toolsQuery } from '../data/insights.ts';
import { formatBytes, formatCount, formatReward, formatShare, plural, UNKNOWN } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import { Loaded } from '../frame/Loaded.tsx';
import { useRun } from '../run/context.ts';
import { filterClauses } from '../run/filter.ts';
import { type Column, DataTable } from '../table/DataTable.tsx';
import { ToolPanel } from './ToolPanel.tsx';

/** Errors by failure class, from the session ledger: `▲` policy, `◆` environment, `✕` infrastructure. */
function Classes({ tool }: { tool: ToolFigures }) {
  const { policy, environment, infrastructure } = tool.failures;
  if (tool.latency.timed === 0) return <span className="text-ink-3">{UNKNOWN}</span>;
  const parts = [
    ['▲', policy, 'text-policy', 'by the policy: bad arguments, unknown tool'],
    ['◆', environment, 'text-environment', 'by the environment: the tool raised'],
    ['✕', infrastructure, 'text-infrastructure', 'by the infrastructure: timeouts, lost sessions'],
  ] as const;
  return (
    <span className="flex justify-end gap-2">
      {parts.map(([mark, count, colour, what]) => (
        <span key={mark} title={`${formatCount(count)} ${what}`} className={count > 0 ? colour : 'text-ink-3'}>
          <span aria-hidden="true">{mark}</span> {formatCount(count)}
          <span className="sr-only"> {what}</span>
        </span>
      ))}
    </span>
  );
}

/** The share of failed calls, with a link to the rollouts that have them. */
function Errors({ tool: { tool, errors, calls } }: { tool: ToolFigures }) {
  const { org, run, filter } = useRun();
  const text = (
    <>
      {formatShare(errors, calls)} <span className="text-ink-3">({formatCount(errors)})</span>
    </>
  );
  if (errors === 0) return text;
  const q = [filterClauses(filter), `tool.error:${printText(tool)}`].filter(Boolean).join(' ');
  return (
    <Link
      to="/$org/runs/$run/rollouts"
      params={{ org, run: run.name }}
      search={{ ...filter, q }}
      className={`${errors > 0.05 * calls ? 'text-bad' : 'text-accent'} hover:underline`}
      aria-label={`Show the rollouts in which ${tool} failed: ${formatShare(errors, calls)} of the calls`}
      onClick={(event) => event.stopPropagation()}
    >
      {text}
    </Link>
  );
}

const columns: Column<ToolFigures>[] = [
  {
    id: 'tool',
    head: 'Tool',
    track: 'minmax(140px,220fr)',
    phone: 'minmax(0,1fr)',
    cell: (tool) => <Name tool={tool} />,
    title: ({ tool }) => tool,
  },
  { id: 'calls', head: 'Calls', track: 'minmax(72px,72fr)', phone: '60px', align: 'right', cell: ({ calls }) => formatCount(calls) },
  {
    id: 'rollouts',
    head: 'Rollouts',
    track: 'minmax(72px,72fr)',
    align: 'right',
    explain: 'Rollouts that called the tool',
    cell: ({ rollouts }) => formatCount(rollouts),
  },
  { id: 'per', head: 'Calls per rollout', track: 'minmax(96px,96fr)', align: 'right', cell: (tool) => tool.calls_per_rollout.toFixed(2) },
  {
    id: 'errors',
    head: 'Errors',
    track: 'minmax(108px,108fr)',
    phone: '92px',
    align: 'right',
    explain: 'Share of results uploaded as errors',
    cell: (tool) => <Errors tool={tool} />,
  },
  {
    id: 'classes',
    head: 'Failure class',
    track: 'minmax(120px,120fr)',
    align: 'right',
    explain: 'Failures of the calls in the session ledger, by class',
    cell: (tool) => <Classes tool={tool} />,
  },
  {
    id: 'p50',
    head: 'p50',
    track: 'minmax(66px,66fr)',
    align: 'right',
    explain: 'Median duration of a call, measured by the server that ran it',
    cell: ({ latency }) => formatDuration(latency.p50_ms),
  },
  {
    id: 'p95',
    head: 'p95',
    track: 'minmax(66px,66fr)',
    phone: '66px',
    align: 'right',
    cell: ({ latency }) => formatDuration(latency.p95_ms),
  },
  {
    id: 'timed',
    head: 'Timed',
    track: 'minmax(66px,66fr)',
    align: 'right',
    explain: 'Share of calls with a known duration, which only calls of verified rollouts have',
    cell: ({ latency, calls }) => formatShare(latency.timed, calls),
  },
  {
    id: 'size',
    head: 'Result',
    track: 'minmax(72px,72fr)',
    align: 'right',
    explain: 'Mean size of a result',
    cell: ({ result_bytes, calls }) => formatBytes(calls === 0 ? null : Math.round(result_bytes / calls)),
  },
  {
    id: 'delta',
    head: 'Δ reward, used',
    track: 'minmax(104px,104fr)',
    align: 'right',
    explain: 'Mean reward of rollouts that used the tool minus that of the others. A correlation, not a cause.',
    cell: ({ reward_used, reward_unused }) =>
      reward_used === null || reward_unused === null ? UNKNOWN : formatReward(reward_used - reward_unused, { signed: true }),
  },
];

/** Columns that are visible while the panel of a tool is open. */
const BESIDE_PANEL = new Set(['tool', 'calls', 'errors', 'p50', 'p95']);

/** Marks a tool that no environment publishes: the policy invented the name, or a task added the tool. */
function Name({ tool: { tool, published, unpublished_in } }: { tool: ToolFigures }) {
  return (
    <>
      {published === false && (
        <span
          className="text-policy"
          title={`Not among the tools that ${unpublished_in.join(', ')} publishes. It can be a tool of a task.`}
        >
          <span aria-hidden="true">▲ </span>
          <span className="sr-only">unknown name: </span>
        </span>
      )}
      <span className="mono">{tool}</span>
    </>
  );
}

/** The tools of a run: calls, errors, failure classes and latency. */
export function ToolsPage() {
  const { run, filter } = useRun();
  const tools = useQuery(toolsQuery(run.id, filter));
  const { tool: opened } = useSearch({ from: '/$org/runs/$run/tools' });
  const navigate = useNavigate();
  const within = filterClauses(filter);
  const open = (tool: string | undefined) =>
    void navigate({ to: '.', search: (old: object) => ({ ...old, tool }) as never, replace: opened !== undefined });
  return (
    <Loaded query={tools}>
      {(data) => {
        const timed = data.tools.reduce((sum, { latency }) => sum + latency.timed, 0);
        const unknown = data.tools.filter(({ published }) => published === false).length;
        const calls = data.tools.reduce((sum, tool) => sum + tool.calls, 0);
        return (
          <div className="flex h-full flex-col">
            <p className="label flex-none border-b border-line px-4 py-2">
              {plural(calls, 'call')} in {plural(data.rollouts, 'rollout')} · latency from {formatShare(timed, calls)} of calls, measured by
              the server that ran them
              {unknown > 0 && <span className="text-policy"> · ▲ {plural(unknown, 'name')} that no environment of the run publishes</span>}
            </p>
            <div
              className={`grid min-h-0 flex-1 ${opened === undefined ? '' : 'grid-cols-[minmax(0,1fr)_minmax(380px,36%)] max-[900px]:grid-cols-[minmax(0,1fr)] max-[900px]:[&>:first-child]:hidden'}`}
            >
              <DataTable
                label="Tools of the run"
                columns={opened === undefined ? columns : columns.filter(({ id }) => BESIDE_PANEL.has(id))}
                onOpen={({ tool }) => open(tool)}
                current={opened ?? null}
                rows={data.tools}
                rowKey={({ tool }) => tool}
                minWidth={opened === undefined ? 1000 : 0}
                empty={<p className="p-4 text-ink-2">No tool calls match the filter. A call is a message of type tool_call with a name.</p>}
              />
              {opened !== undefined && (
                <ToolPanel
                  key={opened}
                  tool={opened}
                  figures={data.tools.find(({ tool }) => tool === opened)}
                  within={within}
                  close={() => open(undefined)}
                />
              )}
            </div>
          </div>
        );
      }}
    </Loaded>
  );
}
