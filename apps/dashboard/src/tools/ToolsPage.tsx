import { useQuery } from '@tanstack/react-query';
import { printText } from '@palestra/query';
import { Link } from '@tanstack/react-router';
import { type ToolFigures, toolsQuery } from '../data/insights.ts';
import { formatBytes, formatCount, formatReward, formatShare, UNKNOWN } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import { Loaded } from '../frame/Loaded.tsx';
import { useRun } from '../run/context.ts';
import { scopeClauses } from '../run/scope.ts';
import { type Column, DataTable } from '../table/DataTable.tsx';

/** Errors by whose they are, as our own ledger knows it: `▲` policy, `◆` environment, `✕` infrastructure. */
function Classes({ tool }: { tool: ToolFigures }) {
  const { policy, environment, infrastructure } = tool.failures;
  if (tool.latency.timed === 0) return <span className="text-ink-3">{UNKNOWN}</span>;
  const parts = [
    ['▲', policy, 'text-policy', 'by the policy: bad arguments, no such tool'],
    ['◆', environment, 'text-environment', 'by the environment: the tool raised'],
    ['✕', infrastructure, 'text-infrastructure', 'by the infrastructure: time-outs, lost sessions'],
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

function columns(to: (tool: string) => string): Column<ToolFigures>[] {
  return [
    {
      id: 'tool',
      head: 'Tool',
      track: 'minmax(130px,1.4fr)',
      cell: ({ tool }) => <ToolLink tool={tool} q={to(tool)} />,
      title: ({ tool }) => tool,
    },
    { id: 'calls', head: 'Calls', track: '72px', align: 'right', cell: ({ calls }) => formatCount(calls) },
    {
      id: 'rollouts',
      head: 'Rollouts',
      track: '72px',
      align: 'right',
      explain: 'Rollouts that called it',
      cell: ({ rollouts }) => formatCount(rollouts),
    },
    { id: 'per', head: 'Calls a rollout', track: '96px', align: 'right', cell: (tool) => tool.calls_per_rollout.toFixed(2) },
    {
      id: 'errors',
      head: 'Errors',
      track: '108px',
      align: 'right',
      explain: 'Results that are errors, of all results, as uploaded',
      cell: ({ errors, calls }) => (
        <span className={errors > 0.05 * calls ? 'text-bad' : ''}>
          {formatShare(errors, calls)} <span className="text-ink-3">({formatCount(errors)})</span>
        </span>
      ),
    },
    {
      id: 'classes',
      head: 'By whom',
      track: '120px',
      align: 'right',
      explain: 'Failures of the calls that our session ledger knows',
      cell: (tool) => <Classes tool={tool} />,
    },
    {
      id: 'p50',
      head: 'p50',
      track: '66px',
      align: 'right',
      explain: 'True time of half of the calls, measured by the server that ran them',
      cell: ({ latency }) => formatDuration(latency.p50_ms),
    },
    { id: 'p95', head: 'p95', track: '66px', align: 'right', cell: ({ latency }) => formatDuration(latency.p95_ms) },
    {
      id: 'timed',
      head: 'Timed',
      track: '66px',
      align: 'right',
      explain: 'Calls whose true time is known: those of verified rollouts',
      cell: ({ latency, calls }) => formatShare(latency.timed, calls),
    },
    {
      id: 'size',
      head: 'Result',
      track: '72px',
      align: 'right',
      explain: 'Mean size of a result',
      cell: ({ result_bytes, calls }) => formatBytes(calls === 0 ? null : Math.round(result_bytes / calls)),
    },
    {
      id: 'delta',
      head: 'Δ reward, used',
      track: '104px',
      align: 'right',
      explain: 'Mean reward of rollouts that used it, minus that of those that did not: a correlation, no cause',
      cell: ({ reward_used, reward_unused }) =>
        reward_used === null || reward_unused === null ? UNKNOWN : formatReward(reward_used - reward_unused, { signed: true, digits: 3 }),
    },
  ];
}

function ToolLink({ tool, q }: { tool: string; q: string }) {
  const { org, run } = useRun();
  return (
    <Link to="/$org/runs/$run/rollouts" params={{ org, run: run.name }} search={(old) => ({ ...old, q })} className="mono hover:underline">
      {tool}
    </Link>
  );
}

/** What the tools of a run did: how often, how well, how fast, and whose fault it was when they failed. */
export function ToolsPage() {
  const { run, scope } = useRun();
  const tools = useQuery(toolsQuery(run.id, scope));
  const within = scopeClauses(scope);
  return (
    <Loaded query={tools}>
      {(data) => {
        const timed = data.tools.reduce((sum, { latency }) => sum + latency.timed, 0);
        const calls = data.tools.reduce((sum, tool) => sum + tool.calls, 0);
        return (
          <div className="flex h-full flex-col">
            <p className="label flex-none border-b border-line px-4 py-2">
              {formatCount(calls)} calls in {formatCount(data.rollouts)} rollouts · latency from {formatShare(timed, calls)} of calls,
              measured by the server that ran them
            </p>
            <div className="min-h-0 flex-1">
              <DataTable
                label="Tools of the run"
                columns={columns((tool) => [within, `tool:${printText(tool)}`].filter(Boolean).join(' '))}
                rows={data.tools}
                rowKey={({ tool }) => tool}
                minWidth={1000}
                empty={
                  <p className="p-4 text-ink-2">
                    No rollout of this scope called a tool. Calls are messages of the type tool_call with a name.
                  </p>
                }
              />
            </div>
          </div>
        );
      }}
    </Loaded>
  );
}
