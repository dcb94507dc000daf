import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { DeployView } from '@palestra/protocol';
import { type ReactNode, useEffect, useMemo, useState } from 'react';
import { errorInstead } from '../data/http.ts';
import { cancelDeploy, deployQuery, isOver, refreshEnvironment } from '../data/hosting/hosting.ts';
import { useHostingLog } from '../data/hosting/log.ts';
import { formatCount } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { ConfirmDialog } from '../frame/ConfirmDialog.tsx';
import { useNow } from '../frame/now.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { deployStates, durationOf, shortCommit, shortDigest, sourceText } from './deploy-texts.ts';
import { DeployState } from './DeployState.tsx';
import { LogBar, severityOf } from './LogBar.tsx';
import { LogStatus, LogView } from './LogView.tsx';

const ORDER = ['debug', 'info', 'warning', 'error'];

/** A deploy with its build log, live. `canManage`: whether it can be cancelled. `back`: a link beside its state. */
export function DeployDetails({ id, canManage, back }: { id: string; canManage: boolean; back?: ReactNode }) {
  const deploy = useQuery(deployQuery(id));
  const [owner, name] = (deploy.data?.environment ?? '/').split('/') as [string, string];
  const isEnded = deploy.data && isOver(deploy.data);
  // The version and its channels appear with the end of the deploy.
  useEffect(() => {
    if (isEnded) void refreshEnvironment({ owner, name });
  }, [isEnded, owner, name]);
  const error = errorInstead(deploy);
  if (error) return <ErrorState error={error} retry={() => void deploy.refetch()} />;
  if (!deploy.data) return <SkeletonRows count={4} />;
  return (
    <div className="flex h-full min-h-0 flex-col">
      <Head deploy={deploy.data} canManage={canManage} back={back} />
      <BuildLog deploy={deploy.data} />
    </div>
  );
}

function Head({ deploy, canManage, back }: { deploy: DeployView; canManage: boolean; back: ReactNode }) {
  const [owner, name] = deploy.environment.split('/') as [string, string];
  const [cancelling, setCancelling] = useState(false);
  const duration = durationOf(deploy, useNow());
  const facts: [name: string, value: ReactNode][] = [
    [
      'Source',
      <span key="source" className="[overflow-wrap:anywhere]">
        {sourceText(deploy)}
      </span>,
    ],
    ...(deploy.commit === null
      ? []
      : [
          [
            'Commit',
            <code key="commit" title={deploy.commit}>
              {shortCommit(deploy.commit)}
            </code>,
          ] as [string, ReactNode],
        ]),
    ...(deploy.source_digest === null
      ? []
      : [
          [
            'Digest',
            <code key="digest" title={deploy.source_digest}>
              {shortDigest(deploy.source_digest)}
            </code>,
          ] as [string, ReactNode],
        ]),
    ['Promotes', deploy.channel ?? 'No channel'],
    ['Author', deploy.author],
    ['Started', <Age key="started" iso={deploy.started_at ?? deploy.created_at} />],
    ['Duration', formatDuration(duration)],
  ];
  return (
    <div className="flex flex-none flex-col gap-2 border-b border-line px-4 py-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1" aria-live="polite">
        {back}
        <h2 className="strong">
          <DeployState deploy={deploy} />
        </h2>
        {deploy.version !== null && (
          <Link to="/environments/$owner/$name" params={{ owner, name }} search={{ tab: 'versions' }} className="link">
            {deploy.reused ? `Equal to version ${deploy.version}` : `Version ${deploy.version}`}
          </Link>
        )}
        {canManage && !isOver(deploy) && (
          <button type="button" className="button ml-auto" onClick={() => setCancelling(true)}>
            Cancel deploy
          </button>
        )}
      </div>
      <dl className="flex flex-wrap gap-x-5 gap-y-1">
        {facts.map(([title, value]) => (
          <div key={title} className="flex min-w-0 gap-[6px]">
            <dt className="text-ink-3">{title}</dt>
            <dd className="min-w-0">{value}</dd>
          </div>
        ))}
      </dl>
      {cancelling && (
        <ConfirmDialog
          title="Cancel this deploy?"
          action="Cancel deploy"
          onConfirm={() => cancelDeploy(deploy)}
          onClose={() => setCancelling(false)}
        >
          <p>The build ends within seconds. It makes no version, and the channels stay as they are.</p>
        </ConfirmDialog>
      )}
    </div>
  );
}

function BuildLog({ deploy }: { deploy: DeployView }) {
  const { id, error } = deploy;
  // Decided once, so that the end of the deploy does not read the log again.
  const [isLive] = useState(!isOver(deploy));
  const log = useHostingLog({ path: `/v1/deploys/${id}/logs`, follow: isLive, ends: isOver(deploy) });
  const [search, setSearch] = useState('');
  const [severity, setSeverity] = useState(severityOf(undefined));
  const failed = error?.line ?? null;
  const [asked, setAsked] = useState<{ number: number; at: number } | null>(null);
  const jump = useMemo(() => asked ?? (failed === null ? null : { number: failed, at: 0 }), [asked, failed]);
  const lines = useMemo(() => {
    const needle = search.trim().toLowerCase();
    return log.lines
      .map((line, index) => ({ line, number: log.first + index }))
      .filter(({ line }) => ORDER.indexOf(line.severity) >= ORDER.indexOf(severity))
      .filter(({ line }) => needle === '' || line.text.toLowerCase().includes(needle));
  }, [log, search, severity]);
  return (
    <>
      {error && (
        <div role="alert" className="flex flex-none flex-wrap items-baseline gap-x-3 gap-y-1 border-b border-line bg-bad-wash px-4 py-2">
          <span className="strong">{error.code}</span>
          <span className="max-h-[54px] min-w-0 overflow-y-auto whitespace-pre-wrap [overflow-wrap:anywhere]" tabIndex={0}>
            {error.detail}
          </span>
          {failed !== null && (
            <button
              type="button"
              className="link"
              onClick={() => {
                setSearch('');
                setSeverity('debug');
                setAsked({ number: failed, at: Date.now() });
              }}
            >
              Line {formatCount(failed)}
            </button>
          )}
        </div>
      )}
      <LogBar search={search} onSearch={setSearch} severity={severity} onSeverity={setSeverity}>
        <LogStatus log={log} shown={lines.length} />
      </LogBar>
      <div className="min-h-[160px] flex-1">
        <LogView
          label="Build log"
          log={log}
          lines={lines}
          failed={failed}
          jump={jump}
          follow={isLive}
          empty={
            log.lines.length > 0
              ? 'No line matches.'
              : isOver(deploy)
                ? 'The build wrote nothing.'
                : `${deployStates[deploy.state][0]}. The build has written nothing yet.`
          }
        />
      </div>
    </>
  );
}
