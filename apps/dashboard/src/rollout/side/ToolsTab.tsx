import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import { formatBytes, formatCount, formatReward, UNKNOWN } from '../../format/number.ts';
import { formatDuration } from '../../format/time.ts';
import { PlainText } from '../../text/PlainText.tsx';
import { errorOf, nameAt, rewardOf } from '../transcript.ts';
import type { PanelProps } from './panel-props.ts';
import { PropertyList, Section } from './parts.tsx';

interface ToolStats {
  name: string;
  calls: number;
  errors: number;
  reward: number;
  bytes: number;
  durations: number[];
  first: number;
}

/** Calls, errors, rewards and sizes of each tool in this rollout, most used first. */
export function toolStats({ outline, items }: Pick<PanelProps, 'outline' | 'items'>): ToolStats[] {
  const tools = new Map<string, ToolStats>();
  items.forEach((item, row) => {
    if (item.kind !== 'call' || item.call === null) return;
    const name = nameAt(outline, item.call) ?? UNKNOWN;
    const tool = tools.get(name) ?? { name, calls: 0, errors: 0, reward: 0, bytes: 0, durations: [], first: row };
    tool.calls += 1;
    if (errorOf(outline, item)) tool.errors += 1;
    tool.reward += rewardOf(outline, item) ?? 0;
    if (item.result !== null) tool.bytes += outline.bytes[item.result] ?? 0;
    const duration = outline.duration_ms[item.call];
    if (duration !== null && duration !== undefined) tool.durations.push(duration);
    tools.set(name, tool);
  });
  return [...tools.values()].toSorted((a, b) => b.calls - a.calls);
}

const median = (values: readonly number[]): number | null => {
  const sorted = values.toSorted((a, b) => a - b);
  const half = (sorted.length - 1) / 2;
  return sorted.length === 0 ? null : (sorted[Math.floor(half)]! + sorted[Math.ceil(half)]!) / 2;
};

export function ToolsTab({ header, outline, items, calls, go }: PanelProps) {
  const tools = useMemo(() => toolStats({ outline, items }), [outline, items]);
  const failureCounts = useMemo(() => {
    const counts = new Map<string, number>();
    for (const { failure_class } of calls?.calls ?? [])
      if (failure_class !== null) counts.set(failure_class, (counts.get(failure_class) ?? 0) + 1);
    return [...counts].map(([name, count]) => `${count} ${name}`).join(', ');
  }, [calls]);
  const timed = tools.reduce((sum, { durations }) => sum + durations.length, 0);
  return (
    <>
      <Section title="Tools">
        {tools.length === 0 ? (
          <p className="text-[12px] text-ink-3">No tool was called.</p>
        ) : (
          <table className="w-full text-[12px]">
            <thead>
              <tr className="label text-right">
                <th className="py-1 text-left font-[450]">Tool</th>
                <th className="pl-2 font-[450]">Calls</th>
                <th className="pl-2 font-[450]">Errors</th>
                <th className="pl-2 font-[450]" title="Median latency, from the session ledger">
                  p50
                </th>
                <th className="pl-2 font-[450]">Result</th>
                <th className="pl-2 font-[450]">Reward</th>
              </tr>
            </thead>
            <tbody>
              {tools.map((tool) => (
                <tr key={tool.name} className="h-[24px] border-t border-line">
                  <td className="w-full max-w-0">
                    <button
                      type="button"
                      className="mono link block w-full truncate text-left"
                      title={tool.name}
                      onClick={() => go(tool.first)}
                    >
                      <PlainText text={tool.name} />
                    </button>
                  </td>
                  <td className="num">{formatCount(tool.calls)}</td>
                  <td className={`num ${tool.errors > 0 ? 'text-policy' : 'text-ink-3'}`}>{tool.errors > 0 ? `▲ ${tool.errors}` : 0}</td>
                  <td className="num whitespace-nowrap pl-2">{formatDuration(median(tool.durations))}</td>
                  <td className="num whitespace-nowrap pl-2">{formatBytes(tool.bytes / tool.calls)}</td>
                  <td className="num pl-2">{formatReward(tool.reward)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Section>
      <Section title="Session ledger">
        <PropertyList
          items={[
            ['Matched', calls?.verified ?? UNKNOWN],
            ['Latency from', `${formatCount(timed)} of ${formatCount(header.num_tool_calls)} calls`],
            ['Time in tools', formatDuration(calls?.latency_ms)],
            ['Failures', failureCounts || UNKNOWN],
            [
              'Session',
              calls?.session ? (
                <Link key="s" to="/sessions/$sid" params={{ sid: calls.session }} className="link mono break-all">
                  {calls.session}
                </Link>
              ) : (
                UNKNOWN
              ),
            ],
          ]}
        />
      </Section>
    </>
  );
}
