import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { ChannelView, EnvironmentDetails } from '@palestra/protocol';
import { type ReactNode, useMemo, useState } from 'react';
import { errorInstead } from '../data/http.ts';
import { versionsQuery, type VersionView } from '../data/environments.ts';
import { channelsQuery, type EnvironmentName } from '../data/hosting/hosting.ts';
import { slotsQuery } from '../data/sessions.ts';
import { formatCount, UNKNOWN } from '../format/number.ts';
import { Age } from '../frame/Age.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { type Column, DataTable } from '../table/DataTable.tsx';
import { type Change, ChannelDialog } from './ChannelDialog.tsx';
import { protocolText, shortCommit, shortDigest } from './deploy-texts.ts';
import { VersionDiffDialog } from './VersionDiffDialog.tsx';

const from = '/environments/$owner/$name' as const;

interface Row {
  version: VersionView;
  channels: readonly ChannelView[];
  /** Open sessions of all organisations; null: not known. */
  sessions: number | null;
}

const faint = (text: string) => <span className="text-ink-3">{text}</span>;

/** `stable`, or `stable 10 %` for a canary. */
function Uses({ row: { version, channels } }: { row: Row }) {
  const uses = channels.flatMap((channel): ReactNode[] => {
    if (channel.version === version.number)
      return [
        <span key={channel.name} className="chip text-good">
          {channel.name}
          {channel.canary_version !== null && ` ${100 - channel.canary_percent} %`}
        </span>,
      ];
    if (channel.canary_version !== version.number) return [];
    return [
      <span key={channel.name} className="chip text-policy" title="A canary: it gets this share of new sessions">
        {channel.name} canary {channel.canary_percent} %
      </span>,
    ];
  });
  return uses.length === 0 ? faint(UNKNOWN) : <span className="inline-flex gap-1">{uses}</span>;
}

interface Actions {
  compare: (version: number) => void;
  /** Null: the reader may not change channels, or the environment has none. */
  change: ((change: Change) => void) | null;
  /** The version that clients get by default; null: the newest. */
  stable: number | null;
  /** Whether there is another version to compare with. */
  several: boolean;
}

const columnsFor = ({ compare, change, stable, several }: Actions, isDeployed: boolean): readonly Column<Row>[] => [
  {
    id: 'number',
    head: 'Version',
    track: '64px',
    phone: '58px',
    align: 'right',
    cell: ({ version }) => <span className="strong">{formatCount(version.number)}</span>,
  },
  ...(isDeployed
    ? ([
        { id: 'channels', head: 'Channels', track: 'minmax(120px,1fr)', phone: 'minmax(0,1fr)', cell: (row) => <Uses row={row} /> },
        {
          id: 'commit',
          head: 'Commit',
          track: '96px',
          title: ({ version }) => version.deployed?.commit ?? undefined,
          cell: ({ version: { deployed } }) => (deployed?.commit ? <code>{shortCommit(deployed.commit)}</code> : faint(UNKNOWN)),
        },
        {
          id: 'digest',
          head: 'Digest',
          explain: 'Of its source: equal sources have equal digests',
          track: '106px',
          title: ({ version }) => version.deployed?.source_digest ?? undefined,
          cell: ({ version: { deployed } }) => {
            if (!deployed?.source_digest) return faint(UNKNOWN);
            const digest = <code>{shortDigest(deployed.source_digest)}</code>;
            return deployed.deploy === null ? (
              digest
            ) : (
              <Link to="." search={{ tab: 'deploys', deploy: deployed.deploy }} className="link" title="Its deploy">
                {digest}
              </Link>
            );
          },
        },
      ] satisfies Column<Row>[])
    : []),
  {
    id: 'source',
    head: isDeployed ? 'Protocol' : 'Runs as',
    track: isDeployed ? '84px' : 'minmax(160px,1.4fr)',
    ...(!isDeployed && { phone: 'minmax(0,1fr)' }),
    title: ({ version: { source } }) => source.url,
    cell: ({ version: { source, deployed } }) => (
      <span className={source.url ? 'mono' : ''}>{deployed?.protocol ? protocolText(deployed.protocol) : (source.url ?? source.kind)}</span>
    ),
  },
  ...(isDeployed
    ? []
    : ([
        {
          id: 'variants',
          head: 'Variants',
          track: 'minmax(90px,.8fr)',
          title: ({ version: { variants } }) => variants.join(', '),
          cell: ({ version: { variants } }) => variants.join(', ') || UNKNOWN,
        },
      ] satisfies Column<Row>[])),
  {
    id: 'tools',
    head: 'Tools',
    track: 'minmax(110px,1.2fr)',
    title: ({ version: { tools } }) => tools.join(', '),
    cell: ({ version: { tools } }) => <span className="mono text-ink-2">{tools.join(' ') || UNKNOWN}</span>,
  },
  {
    id: 'tasks',
    head: 'Tasks',
    track: '64px',
    ...(!isDeployed && { phone: '56px' }),
    align: 'right',
    cell: ({ version: { num_tasks: count } }) => formatCount(count),
  },
  {
    id: 'sessions',
    head: 'Sessions',
    explain: 'Open sessions now',
    track: '70px',
    align: 'right',
    cell: ({ sessions }) => (sessions ? formatCount(sessions) : faint(sessions === null ? UNKNOWN : '0')),
  },
  ...(isDeployed
    ? []
    : ([
        {
          id: 'asked',
          head: 'Discovered',
          explain: 'When Palestra last read splits and tools from the server',
          track: '100px',
          align: 'right',
          cell: ({ version: { discovered_at: at } }) => <span className="text-ink-3">{at === null ? 'never' : <Age iso={at} />}</span>,
        },
      ] satisfies Column<Row>[])),
  {
    id: 'made',
    head: 'Created',
    track: '92px',
    ...(!isDeployed && { phone: '92px' }),
    align: 'right',
    cell: ({ version: { created_at: at } }) => (
      <span className="text-ink-3">
        <Age iso={at} />
      </span>
    ),
  },
  ...(several || change !== null
    ? ([
        {
          id: 'actions',
          head: <span className="sr-only">Actions</span>,
          track: change === null ? '88px' : '246px',
          phone: change === null ? '84px' : '214px',
          align: 'right',
          cell: ({ version: { number } }) => (
            <span className="inline-flex gap-3">
              {several && (
                <button type="button" className="link" onClick={() => compare(number)} aria-label={`Compare version ${number}`}>
                  Compare
                </button>
              )}
              {change !== null && number !== stable && (
                <>
                  <button
                    type="button"
                    className="link"
                    onClick={() => change({ kind: 'canary', version: number })}
                    aria-label={`Make version ${number} a canary`}
                  >
                    Canary…
                  </button>
                  <button
                    type="button"
                    className="link"
                    onClick={() => change({ kind: 'promote', version: number })}
                    aria-label={`Promote version ${number}`}
                  >
                    Promote…
                  </button>
                </>
              )}
            </span>
          ),
        },
      ] satisfies Column<Row>[])
    : []),
];

/** Immutable versions, newest first, with the channels that use them. A session keeps the version that it began with. */
export function VersionsTab({ environment }: { environment: EnvironmentDetails }) {
  const { owner, name, deployed: isDeployed, can_manage: canManage } = environment;
  const named: EnvironmentName = { owner, name };
  const versions = useQuery(versionsQuery(owner, name));
  const channels = useQuery({ ...channelsQuery(named), enabled: isDeployed }).data?.channels;
  const slots = useQuery(slotsQuery(`${owner}/${name}`)).data?.environments;
  const search = useSearch({ from });
  const navigate = useNavigate({ from });
  const [change, setChange] = useState<Change | null>(null);
  const all = versions.data?.versions;
  const rows = useMemo(
    () =>
      (all ?? []).map((version): Row => ({
        version,
        channels: channels ?? [],
        sessions: slots ? (slots.find((group) => group.version === version.number)?.used ?? 0) : null,
      })),
    [all, channels, slots],
  );
  const stable = channels?.find((channel) => channel.name === 'stable')?.version ?? null;
  const columns = useMemo(() => {
    // With the version that clients get, or else with the one before.
    const compare = (number: number) => {
      const before = all?.find((version) => version.number < number)?.number ?? all?.find((version) => version.number !== number)?.number;
      const base = stable !== null && stable !== number ? stable : before;
      void navigate({ search: (old) => ({ ...old, from: base, to: number }) });
    };
    const actions = { compare, change: canManage && isDeployed ? setChange : null, stable, several: canManage && (all?.length ?? 0) > 1 };
    return columnsFor(actions, isDeployed);
  }, [all, stable, canManage, isDeployed, navigate]);
  const error = errorInstead(versions);
  if (error) return <ErrorState error={error} retry={() => void versions.refetch()} />;
  if (!all) return <SkeletonRows />;
  return (
    <div className="flex h-full min-h-0 flex-col">
      {channels && channels.length > 0 && <Channels channels={channels} onRollBack={canManage ? setChange : null} />}
      <div className="min-h-[120px] flex-1">
        <DataTable
          label="Versions, newest first"
          columns={columns}
          rows={rows}
          rowKey={({ version }) => version.id}
          minWidth={isDeployed ? 1000 : 900}
          empty={
            <div className="p-4 text-ink-3">
              <p>This environment has no version yet. Deploy it, or add its server:</p>
              <pre
                className="code-block mt-2 inline-block max-w-full"
                tabIndex={0}
              >{`palestra env push --url http://127.0.0.1:8000 --name ${owner}/${name}`}</pre>
            </div>
          }
        />
      </div>
      {change && <ChannelDialog environment={named} change={change} channels={channels ?? []} onClose={() => setChange(null)} />}
      {search.from !== undefined && search.to !== undefined && (
        <VersionDiffDialog
          environment={named}
          numbers={all.map(({ number }) => number)}
          from={search.from}
          to={search.to}
          onChange={(pair) => void navigate({ search: (old) => ({ ...old, ...pair }), replace: true })}
          onClose={() => void navigate({ search: (old) => ({ ...old, from: undefined, to: undefined }), replace: true })}
        />
      )}
    </div>
  );
}

/** Which version each channel names, why, and how to go back. */
function Channels({ channels, onRollBack }: { channels: readonly ChannelView[]; onRollBack: ((change: Change) => void) | null }) {
  return (
    <ul aria-label="Channels" className="flex-none border-b border-line">
      {channels.map((channel) => {
        const {
          name,
          version,
          canary_version: canary,
          canary_percent: percent,
          previous_version: previous,
          reason,
          updated_at: at,
        } = channel;
        const back = canary !== null ? 'End canary' : previous !== null ? `Roll back to ${previous}` : null;
        return (
          <li key={name} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-[5px]">
            <span className="strong">{name}</span>
            <span>
              Version {version}
              {canary !== null && (
                <span className="text-policy">
                  {' '}
                  · canary: version {canary} gets {percent} % of new sessions
                </span>
              )}
            </span>
            <span className="min-w-0 text-ink-3 [overflow-wrap:anywhere]">
              {reason} <Age iso={at} />
            </span>
            {onRollBack && back !== null && (
              <button
                type="button"
                className="button ml-auto"
                onClick={() => onRollBack({ kind: 'roll-back', channel })}
                aria-label={`${back}, channel ${name}`}
              >
                {back}
              </button>
            )}
          </li>
        );
      })}
    </ul>
  );
}
