import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { EnvironmentDetails, InstanceList, InstanceView } from '@palestra/protocol';
import { type ReactNode, useMemo, useState } from 'react';
import { errorInstead } from '../data/http.ts';
import { type EnvironmentName, hostingSettingsQuery, instancesQuery, restartInstance } from '../data/hosting/hosting.ts';
import { formatCount, formatMean, plural, UNKNOWN } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { ConfirmDialog } from '../frame/ConfirmDialog.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { type Column, DataTable } from '../table/DataTable.tsx';

const states: Record<InstanceView['state'], readonly [text: string, mark: string, className: string]> = {
  starting: ['Starting', '◐', 'text-policy'],
  ready: ['Ready', '●', 'text-good'],
  draining: ['Draining', '◑', 'text-policy'],
  failed: ['Failed', '✕', 'text-infrastructure'],
  stopped: ['Stopped', '○', 'text-ink-3'],
};

const isLiving = ({ stopped_at: stoppedAt }: InstanceView): boolean => stoppedAt === null;

/** Null without values. */
export function medianOf(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const sorted = values.toSorted((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

const faint = (text: string) => <span className="text-ink-3">{text}</span>;

const columnsFor = (restart: (instance: InstanceView) => void): readonly Column<InstanceView>[] => [
  {
    id: 'state',
    head: 'State',
    track: '96px',
    phone: '96px',
    cell: ({ state }) => {
      const [text, mark, className] = states[state];
      return (
        <span className={className}>
          <span aria-hidden="true">{mark}</span> {text}
        </span>
      );
    },
  },
  {
    id: 'version',
    head: 'Version',
    track: '66px',
    phone: '60px',
    align: 'right',
    cell: ({ version }) => (version === null ? faint('Deleted') : formatCount(version)),
  },
  { id: 'sessions', head: 'Sessions', track: '72px', phone: '70px', align: 'right', cell: ({ sessions }) => formatCount(sessions) },
  {
    id: 'cpus',
    head: 'CPU',
    explain: 'Processors that it uses now',
    track: '60px',
    align: 'right',
    cell: (instance) => (isLiving(instance) && instance.cpus !== null ? instance.cpus.toFixed(2) : faint(UNKNOWN)),
  },
  {
    id: 'memory',
    head: 'Memory',
    track: '76px',
    align: 'right',
    cell: (instance) => (isLiving(instance) && instance.memory_mb !== null ? `${Math.round(instance.memory_mb)} MB` : faint(UNKNOWN)),
  },
  {
    id: 'restarts',
    head: 'Restarts',
    track: '70px',
    align: 'right',
    cell: ({ restarts }) => (restarts === 0 ? faint('0') : formatCount(restarts)),
  },
  {
    id: 'start',
    head: 'Cold start',
    explain: 'From the start to the first answer',
    track: '84px',
    align: 'right',
    cell: ({ cold_start_ms: ms }) => formatDuration(ms),
  },
  {
    id: 'detail',
    head: 'Reason',
    explain: 'Why it does not serve, or how it last failed',
    track: 'minmax(180px,2fr)',
    title: ({ detail }) => detail ?? undefined,
    cell: ({ detail, state }) =>
      detail === null ? faint(UNKNOWN) : <span className={state === 'failed' ? 'text-infrastructure' : 'text-ink-2'}>{detail}</span>,
  },
  {
    id: 'created',
    head: 'Started',
    track: '92px',
    align: 'right',
    cell: ({ created_at: at }) => (
      <span className="text-ink-3">
        <Age iso={at} />
      </span>
    ),
  },
  {
    id: 'actions',
    head: <span className="sr-only">Actions</span>,
    track: '120px',
    phone: 'minmax(0,1fr)',
    align: 'right',
    cell: (instance) => (
      <span className="inline-flex gap-3">
        <Link
          to="."
          search={{ tab: 'logs', instance: instance.id }}
          className="link"
          aria-label={`Log of instance ${instance.id.slice(0, 8)}`}
        >
          Log
        </Link>
        {isLiving(instance) && instance.state !== 'draining' && (
          <button
            type="button"
            className="link"
            onClick={() => restart(instance)}
            aria-label={`Restart instance ${instance.id.slice(0, 8)}`}
          >
            Restart…
          </button>
        )}
      </span>
    ),
  },
];

/** Instances that run and those that ended lately, with sessions, usage, starts and the last problem. */
export function InstancesTab({ environment }: { environment: EnvironmentDetails }) {
  const named = { owner: environment.owner, name: environment.name };
  const instances = useQuery(instancesQuery(named));
  const [restarting, setRestarting] = useState<InstanceView | null>(null);
  const columns = useMemo(() => columnsFor(setRestarting), []);
  const error = errorInstead(instances);
  if (error) return <ErrorState error={error} retry={() => void instances.refetch()} />;
  if (!instances.data) return <SkeletonRows />;
  return (
    <div className="flex h-full min-h-0 flex-col">
      <Figures list={instances.data} environment={named} />
      <div className="min-h-[160px] flex-1">
        <DataTable
          label="Instances, running first"
          columns={columns}
          rows={instances.data.instances}
          rowKey={({ id }) => id}
          minWidth={960}
          empty={
            <p className="p-4 text-ink-3">
              No instances. One starts when a session needs it, or at once with “Always running” in Settings.
            </p>
          }
        />
      </div>
      {restarting && (
        <ConfirmDialog
          title="Restart this instance?"
          action="Restart instance"
          onConfirm={() => restartInstance(named, restarting.id)}
          onClose={() => setRestarting(null)}
        >
          <p>
            Another instance takes its place. {restarting.sessions === 0 ? 'It has no sessions.' : 'Its open sessions end on the old one.'}
          </p>
        </ConfirmDialog>
      )}
    </div>
  );
}

function Figures({ list: { instances, waiting, queue_ms: queueMs }, environment }: { list: InstanceList; environment: EnvironmentName }) {
  const settings = useQuery(hostingSettingsQuery(environment)).data;
  const ready = instances.filter(({ state }) => state === 'ready');
  const sessions = instances.reduce((sum, instance) => sum + instance.sessions, 0);
  const starts = instances.flatMap(({ cold_start_ms: ms }) => (ms === null ? [] : [ms]));
  const figures: [title: string, value: ReactNode, note: string][] = [
    ['Ready instances', formatCount(ready.length), settings === undefined ? '' : `${settings.min_warm} to ${settings.max} of each version`],
    [
      'Sessions per instance',
      ready.length === 0 ? UNKNOWN : formatMean(sessions / ready.length),
      `${formatCount(sessions)} open${settings === undefined ? '' : `, at most ${formatCount(settings.concurrency)} each`}`,
    ],
    ['Waiting sessions', formatCount(waiting), waiting === 0 ? 'Every session has an instance' : 'For an instance with a free place'],
    ['Queue time', formatDuration(queueMs), 'Median of the last hour'],
    ['Cold start', formatDuration(medianOf(starts)), starts.length === 0 ? 'No start yet' : `Median of ${plural(starts.length, 'start')}`],
  ];
  return (
    <dl className="grid flex-none grid-cols-5 border-b border-line max-[760px]:grid-cols-2">
      {figures.map(([title, value, note]) => (
        <div key={title} className="min-w-0 px-4 py-2">
          <dt className="label">{title}</dt>
          <dd>
            <span className="block text-[18px] leading-[24px] tabular-nums">{value}</span>
            <span className="label block">{note}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
