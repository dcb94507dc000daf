import { Link } from '@tanstack/react-router';
import { ROLLOUT_SORTS, type RolloutRow } from '@palestra/protocol';
import type { ReactNode } from 'react';
import { type FromList } from '../../data/list-order.ts';
import { formatBytes, formatCount, formatReward, UNKNOWN } from '../../format/number.ts';
import { taskLabel } from '../../format/task.ts';
import { formatAbsolute, formatDuration } from '../../format/time.ts';
import { Age } from '../../frame/Age.tsx';
import { PartialSum } from '../../frame/PartialSum.tsx';
import { WithProvenance } from '../../frame/Provenance.tsx';
import { RewardDot } from '../../frame/Reward.tsx';
import { Stop } from '../../frame/Stop.tsx';
import type { Column } from '../../table/DataTable.tsx';
import { flagName, VerifiedMark } from './marks.tsx';
import type { Solved } from './solved.ts';

type Cell = (row: RolloutRow) => ReactNode;
interface Entry extends Omit<Column<RolloutRow>, 'cell' | 'sortable' | 'id'> {
  /** The name in the column chooser. */
  name: string;
  cell: Cell;
}

const known =
  (field: string, value: (row: RolloutRow) => ReactNode): Cell =>
  (row) => <WithProvenance provenance={row.provenance[field]}>{value(row) ?? UNKNOWN}</WithProvenance>;
const count = (value: number | null): ReactNode => (value === 0 ? <span className="text-ink-3">0</span> : formatCount(value));
const right = { align: 'right' } as const;

const entries = (solved: Solved, from: FromList) =>
  ({
    step: { name: 'Step', head: 'Step', track: '52px', phone: '46px', ...right, cell: known('step', (row) => row.step) },
    policy_step: {
      name: 'Policy step',
      head: 'Policy',
      explain: 'Step of the policy that acted',
      track: '58px',
      ...right,
      cell: (row) => row.policy_step ?? UNKNOWN,
    },
    env: {
      name: 'Environment',
      head: 'Environment',
      track: 'minmax(84px,1.2fr)',
      title: (row) => row.environment ?? undefined,
      cell: (row) => <span className="text-ink-2">{row.environment?.split('/').at(-1) ?? UNKNOWN}</span>,
    },
    task: {
      name: 'Task',
      head: 'Task',
      track: 'minmax(92px,1fr)',
      phone: 'minmax(0,1fr)',
      title: (row) => row.rolloutName ?? undefined,
      cell: (row) => (
        <Link to="/rollout/$id" params={{ id: row.id }} search={from} tabIndex={-1} className="hover:text-accent hover:underline">
          {taskLabel(row)}
        </Link>
      ),
    },
    sample: {
      name: 'Sample',
      head: 'Sample',
      explain: 'Index of the sample in its group',
      track: '56px',
      ...right,
      cell: known('sample', (row) => row.sample),
    },
    reward: {
      name: 'Reward',
      head: 'Reward',
      explain:
        'Sum of the message rewards, or the reported total if no message has one. – means unscored, not 0. Hatched: the partial sum of an interrupted rollout.',
      track: '98px',
      phone: '86px',
      ...right,
      cell: (row) => <Reward row={row} solved={solved} />,
    },
    turns: { name: 'Turns', head: 'Turns', track: '52px', ...right, cell: known('turns', (row) => formatCount(row.turns)) },
    calls: { name: 'Tool calls', head: 'Calls', explain: 'Tool calls', track: '52px', ...right, cell: (row) => count(row.num_tool_calls) },
    errors: {
      name: 'Tool errors',
      head: 'Errors',
      explain: 'Tool results that are errors',
      track: '52px',
      ...right,
      cell: (row) => (row.num_errors > 0 ? <span className="text-bad">{row.num_errors}</span> : count(0)),
    },
    stop: {
      name: 'Stop reason',
      head: 'Stop reason',
      explain: 'Why the rollout ended: ▲ policy, ◆ environment, ✕ infrastructure',
      track: 'minmax(104px,0.8fr)',
      phone: '120px',
      cell: known('stop', (row) => <Stop stop={row.stop} />),
    },
    messages: { name: 'Messages', head: 'Messages', track: '72px', ...right, cell: (row) => formatCount(row.num_messages) },
    tokens: {
      name: 'Model tokens',
      head: 'Tokens',
      explain: 'Tokens that the model wrote; ~ is an estimate from bytes',
      track: '64px',
      ...right,
      cell: known('tokens', (row) => formatCount(row.tokens)),
    },
    latency: {
      name: 'Latency',
      head: 'Latency',
      explain: 'Sum of the latencies of tool calls, from the session ledger',
      track: '72px',
      ...right,
      cell: (row) => (
        <WithProvenance provenance={row.latency_ms === null ? 'unknown' : row.provenance['telemetry']}>
          {formatDuration(row.latency_ms)}
        </WithProvenance>
      ),
    },
    verified: {
      name: 'Verified',
      head: 'Verified',
      explain: '✓ all calls are in the session ledger',
      track: '60px',
      cell: (row) => <VerifiedMark verified={row.verified} />,
    },
    flags: {
      name: 'Flags',
      head: 'Flags',
      track: 'minmax(80px,0.8fr)',
      title: (row) => row.flags.map(flagName).join(', ') || undefined,
      cell: (row) => <span className="text-ink-3">{[...(row.gaps > 0 ? ['gap'] : []), ...row.flags.map(flagName)].join(' · ')}</span>,
    },
    split: { name: 'Split', head: 'Split', track: '74px', cell: (row) => <span className="text-ink-2">{row.split ?? UNKNOWN}</span> },
    phase: { name: 'Phase', head: 'Phase', track: '58px', cell: known('phase', (row) => <span className="text-ink-2">{row.phase}</span>) },
    model: {
      name: 'Model',
      head: 'Model',
      track: 'minmax(90px,0.8fr)',
      title: (row) => row.model ?? undefined,
      cell: (row) => <span className="text-ink-2">{row.model ?? UNKNOWN}</span>,
    },
    name: {
      name: 'Name',
      head: 'Name',
      track: 'minmax(140px,1.6fr)',
      title: (row) => row.rolloutName ?? undefined,
      cell: (row) => row.rolloutName ?? UNKNOWN,
    },
    group: {
      name: 'Group',
      head: 'Group',
      track: '92px',
      title: (row) => row.group ?? undefined,
      cell: known('group', (row) => <span className="mono text-ink-3">{row.group?.slice(-8) ?? UNKNOWN}</span>),
    },
    bytes: { name: 'Size', head: 'Size', track: '70px', ...right, cell: (row) => formatBytes(row.bytes) },
    state: { name: 'State', head: 'State', track: '70px', cell: (row) => <span className="text-ink-2">{row.state}</span> },
    created_at: {
      name: 'Received',
      head: 'Received',
      track: '92px',
      ...right,
      title: (row) => formatAbsolute(row.created_at),
      cell: (row) => (
        <span className="text-ink-3">
          <Age iso={row.created_at} />
        </span>
      ),
    },
  }) satisfies Record<string, Entry>;

export type ColumnId = keyof ReturnType<typeof entries>;
const shape = entries(() => false, {});
export const COLUMN_NAMES = Object.fromEntries(Object.entries(shape).map(([id, { name }]) => [id, name])) as Record<ColumnId, string>;
export const COLUMN_IDS = Object.keys(shape) as ColumnId[];
const narrow: ColumnId[] = ['step', 'env', 'task', 'sample', 'reward', 'turns', 'errors', 'stop'];
const wide: ColumnId[] = [
  'step',
  'env',
  'task',
  'sample',
  'reward',
  'turns',
  'calls',
  'errors',
  'stop',
  'tokens',
  'latency',
  'verified',
  'flags',
  'created_at',
];
const WIDE_PX = 900;

/** The columns of an address, else the default columns for the width. */
export function columnIds(cols: string | undefined, width: number): ColumnId[] {
  const requested = (cols ?? '').split(',').filter((id): id is ColumnId => id in shape);
  if (requested.length > 0) return requested;
  return width >= WIDE_PX ? wide : narrow;
}

/** `from`: search parameters of the links to a rollout. */
export function rolloutColumns(ids: readonly ColumnId[], solved: Solved, from: FromList): Column<RolloutRow>[] {
  const all: Record<ColumnId, Entry> = entries(solved, from);
  return ids.map((id) => ({ ...all[id], id, sortable: ROLLOUT_SORTS.some((sort) => sort === id) }));
}

function Reward({ row, solved }: { row: RolloutRow; solved: Solved }) {
  const isSolved = (reward: number) => solved(row, reward);
  const colour = row.reward === null ? 'text-ink-3' : isSolved(row.reward) ? 'text-good' : row.reward > 0 ? '' : 'text-bad';
  return (
    <span className={`inline-flex items-center gap-2 ${colour}`}>
      {row.reward === null ? (
        <span className="inline-flex items-center gap-1">
          <PartialSum rollout={row} />
          {UNKNOWN}
          <span className="sr-only">not scored</span>
        </span>
      ) : (
        <WithProvenance provenance={row.provenance['reward']}>{formatReward(row.reward)}</WithProvenance>
      )}
      <RewardDot reward={row.reward} solved={isSolved} />
    </span>
  );
}
