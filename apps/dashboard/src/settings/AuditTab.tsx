import { useInfiniteQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { type AuditEvent, auditExportUrl, type AuditFilter, auditQuery } from '../data/audit.ts';
import { ApiError, errorInstead } from '../data/http.ts';
import { Age } from '../frame/Age.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { type Column, DataTable } from '../table/DataTable.tsx';
import { nextPageOf } from '../table/next-page.ts';
import { ACTION_GROUPS, actionText, detailsOf } from './audit-texts.ts';
import { browserName } from './browser-name.ts';

const ALL: AuditFilter = { action: '', actor: '', since: '', until: '' };

const columns: readonly Column<AuditEvent>[] = [
  { id: 'at', head: 'Time', track: '100px', phone: '96px', cell: ({ at }) => <Age iso={at} /> },
  {
    id: 'actor',
    head: 'Actor',
    track: 'minmax(110px,1fr)',
    phone: 'minmax(0,0.8fr)',
    explain: 'The member, with the name at that time, and the API key',
    title: ({ actor, key }) => [actor?.name, key?.name].filter(Boolean).join(' · ') || undefined,
    cell: ({ actor, key, address }) => (
      <>
        {actor === null ? (
          <span className="text-ink-3">{address === '' ? 'The server' : 'Unknown'}</span>
        ) : (
          <span className="strong">{actor.name ?? actor.id}</span>
        )}
        {key !== null && <span className="text-ink-3"> · {key.name ?? key.id}</span>}
      </>
    ),
  },
  {
    id: 'action',
    head: 'Event',
    track: 'minmax(180px,1fr)',
    phone: 'minmax(0,1fr)',
    title: ({ action }) => action,
    cell: (event) => <span className={event.refused ? 'text-bad' : undefined}>{actionText(event)}</span>,
  },
  {
    id: 'target',
    head: 'Target',
    track: 'minmax(120px,1fr)',
    title: ({ target }) => target?.name ?? target?.id ?? undefined,
    cell: ({ target }) => target?.name ?? (target?.id ? <span className="mono text-ink-3">{target.id}</span> : null),
  },
  {
    id: 'details',
    head: 'Details',
    track: 'minmax(180px,2fr)',
    title: detailsOf,
    cell: (event) => <span className="text-ink-2">{detailsOf(event)}</span>,
  },
  {
    id: 'address',
    head: 'From',
    track: 'minmax(120px,1fr)',
    explain: 'Address of the client as seen by the server, and its browser or program',
    title: ({ address, user_agent: agent }) => `${address} ${agent}`.trim() || undefined,
    cell: ({ address, user_agent: agent }) =>
      address === '' ? null : (
        <>
          <span className="mono">{address}</span> <span className="text-ink-3">{browserName(agent)}</span>
        </>
      ),
  },
];

function Filters({ filter, change }: { filter: AuditFilter; change: (part: Partial<AuditFilter>) => void }) {
  return (
    <search aria-label="Filter events" className="flex flex-none flex-wrap items-end gap-2 border-b border-line px-4 py-3">
      <label className="flex flex-col gap-[2px]">
        <span className="label">Event</span>
        <select className="input w-[180px]" value={filter.action} onChange={({ target }) => change({ action: target.value })}>
          <option value="">All events</option>
          {ACTION_GROUPS.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <label className="flex flex-col gap-[2px]">
        <span className="label">Member</span>
        <input
          className="input w-[180px]"
          placeholder="Name or ID"
          maxLength={100}
          value={filter.actor}
          onChange={({ target }) => change({ actor: target.value })}
        />
      </label>
      <label className="flex flex-col gap-[2px]">
        <span className="label">From day</span>
        <input className="input" type="date" value={filter.since} onChange={({ target }) => change({ since: target.value })} />
      </label>
      <label className="flex flex-col gap-[2px]">
        <span className="label">To day</span>
        <input className="input" type="date" value={filter.until} onChange={({ target }) => change({ until: target.value })} />
      </label>
      <a className="button" href={auditExportUrl(filter)} download="audit.jsonl">
        Download as JSON lines
      </a>
    </search>
  );
}

/** The audit log of the organisation, for its owners. */
export function AuditTab() {
  const [filter, setFilter] = useState(ALL);
  const audit = useInfiniteQuery(auditQuery(filter));
  const rows = useMemo(() => audit.data?.pages.flatMap(({ events }) => events) ?? [], [audit.data]);
  if (audit.error instanceof ApiError && audit.error.code === 'owner_required') {
    return <p className="p-4 text-ink-2">Only owners can read the audit log.</p>;
  }
  const error = errorInstead(audit);
  return (
    <div className="flex h-full min-h-0 flex-col">
      <Filters filter={filter} change={(part) => setFilter((old) => ({ ...old, ...part }))} />
      <div className="min-h-[160px] flex-1">
        {error ? (
          <ErrorState error={error} retry={() => void audit.refetch()} />
        ) : audit.data === undefined ? (
          <SkeletonRows />
        ) : (
          <DataTable
            label="Audit log, newest first"
            columns={columns}
            rows={rows}
            rowKey={({ id }) => id}
            minWidth={1000}
            {...nextPageOf(audit)}
            empty={<p className="p-4 text-ink-2">No event matches the filter.</p>}
          />
        )}
      </div>
    </div>
  );
}
