import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { EnvironmentDetails } from '@palestra/protocol';
import { useEffect, useMemo, useState } from 'react';
import { versionsQuery } from '../data/environments.ts';
import { deploysQuery, instancesQuery, isOver } from '../data/hosting/hosting.ts';
import { useHostingLog } from '../data/hosting/log.ts';
import { formatClock } from '../format/time.ts';
import { LogBar, severityOf } from './LogBar.tsx';
import { LogStatus, LogView } from './LogView.tsx';

const from = '/environments/$owner/$name' as const;
/** Lines with which the log of the instances begins. */
const TAIL = 2_000;
const TYPING_MS = 300;

/** What the instances of an environment wrote, or a build. The address has the filters. */
export function LogsTab({ environment: { owner, name } }: { environment: EnvironmentDetails }) {
  const search = useSearch({ from });
  const navigate = useNavigate({ from });
  const set = (change: { q?: string; severity?: string; instance?: string; of?: number; deploy?: string; follow?: false }) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  const instances = useQuery(instancesQuery({ owner, name })).data?.instances ?? [];
  const versions = useQuery(versionsQuery(owner, name)).data?.versions ?? [];
  const deploys = useQuery(deploysQuery({ owner, name })).data?.deploys ?? [];
  const severity = severityOf(search.severity);
  const [typed, setTyped] = useState(search.q ?? '');
  useEffect(() => {
    if (typed === (search.q ?? '')) return;
    const timer = setTimeout(() => void navigate({ search: (before) => ({ ...before, q: typed || undefined }), replace: true }), TYPING_MS);
    return () => clearTimeout(timer);
    // Not after every rendering: new lines render more often than the reader pauses.
  }, [typed, search.q, navigate]);
  const follows = search.follow !== false;
  const isBuild = search.deploy !== undefined;
  const log = useHostingLog({
    path: isBuild ? `/v1/deploys/${search.deploy}/logs` : `/v1/environments/${encodeURIComponent(owner)}/${encodeURIComponent(name)}/logs`,
    filter: {
      q: search.q,
      severity: severity === 'debug' ? undefined : severity,
      ...(isBuild ? {} : { instance: search.instance, version: search.of }),
    },
    tail: TAIL,
    follow: follows,
    ends: isBuild && deploys.some((one) => one.id === search.deploy && isOver(one)),
  });
  const lines = useMemo(() => log.lines.map((line) => ({ line, number: null })), [log.lines]);
  const versionOf = new Map(instances.map(({ id, version }) => [id, version]));
  const chosen = isBuild
    ? `deploy ${search.deploy}`
    : search.instance
      ? `instance ${search.instance}`
      : search.of
        ? `version ${search.of}`
        : '';
  const choose = (value: string) => {
    const [kind, id] = value.split(' ');
    set({
      deploy: kind === 'deploy' ? id : undefined,
      instance: kind === 'instance' ? id : undefined,
      of: kind === 'version' ? Number(id) : undefined,
    });
  };
  // One that is in the address and not, or no longer, in the list.
  const isUnknown = search.instance !== undefined && !versionOf.has(search.instance);
  return (
    <div className="flex h-full min-h-0 flex-col">
      <LogBar
        search={typed}
        onSearch={setTyped}
        severity={severity}
        onSeverity={(one) => set({ severity: one === 'debug' ? undefined : one })}
      >
        <select
          className="input max-w-full min-w-0"
          aria-label="Show the log of"
          value={chosen}
          onChange={(event) => choose(event.target.value)}
        >
          <option value="">All instances</option>
          <optgroup label="Versions">
            {versions.map(({ number }) => (
              <option key={number} value={`version ${number}`}>
                Version {number}
              </option>
            ))}
          </optgroup>
          <optgroup label="Instances">
            {isUnknown && <option value={chosen}>{search.instance!.slice(0, 8)}</option>}
            {instances.map(({ id, version, state }) => (
              <option key={id} value={`instance ${id}`}>
                {id.slice(0, 8)} · version {version ?? '–'} · {state}
              </option>
            ))}
          </optgroup>
          <optgroup label="Builds">
            {deploys.map(({ id, version, state, created_at: at }) => (
              <option key={id} value={`deploy ${id}`}>
                Build of {formatClock(at)} · {version === null ? state : `version ${version}`}
              </option>
            ))}
          </optgroup>
        </select>
        <label className="flex items-center gap-2">
          <input
            type="checkbox"
            className="accent-[var(--accent)]"
            checked={follows}
            onChange={() => set({ follow: follows ? false : undefined })}
          />
          Follow
        </label>
        <LogStatus log={log} shown={lines.length} />
      </LogBar>
      <div className="min-h-0 flex-1">
        <LogView
          label={isBuild ? 'Build log' : 'Log of the instances'}
          log={log}
          lines={lines}
          follow={follows}
          {...(!isBuild &&
            search.instance === undefined && {
              source: (line) => {
                const version = versionOf.get(line.source);
                return `${line.source.slice(0, 8)}${version == null ? '' : `@${version}`}`;
              },
            })}
          empty={search.q || severity !== 'debug' ? 'No line matches.' : 'Nothing was written yet.'}
        />
      </div>
    </div>
  );
}
