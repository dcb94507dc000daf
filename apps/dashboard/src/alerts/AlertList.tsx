import type { Alert, Webhook } from '@palestra/protocol';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { alertsQuery, deleteAlert, saveAlert, webhooksQuery } from '../data/alerts.ts';
import { meQuery } from '../data/queries.ts';
import { Age } from '../frame/Age.tsx';
import { ConfirmDialog } from '../frame/ConfirmDialog.tsx';
import { Loaded } from '../frame/Loaded.tsx';
import { AlertDialog } from './AlertDialog.tsx';
import { formOf } from './form-state.ts';
import { SubjectLink } from './SubjectLink.tsx';

/** Each alert with its condition and the runs in which it fires. */
export function AlertList() {
  const alerts = useQuery(alertsQuery);
  const webhooks = useQuery(webhooksQuery);
  const { alert: chosen } = useSearch({ from: '/alerts' });
  const [changing, setChanging] = useState<Alert | null>(null);
  const [deleting, setDeleting] = useState<Alert | null>(null);
  return (
    <Loaded query={alerts}>
      {(rows) => (
        <>
          {rows.length === 0 && <NoAlerts />}
          <ul aria-label="Alerts">
            {rows.map((alert) => (
              <AlertRow
                key={alert.id}
                alert={alert}
                webhook={webhooks.data?.find(({ id }) => id === alert.webhook)}
                current={alert.id === chosen}
                onChange={() => setChanging(alert)}
                onDelete={() => setDeleting(alert)}
              />
            ))}
          </ul>
          {changing && <AlertDialog id={changing.id} initial={formOf(changing)} onClose={() => setChanging(null)} />}
          {deleting && (
            <ConfirmDialog
              title={`Delete ${deleting.name}?`}
              action="Delete alert"
              onConfirm={() => deleteAlert(deleting.id)}
              onClose={() => setDeleting(null)}
            >
              <p>This also deletes its history and cannot be undone. To keep the history, mute the alert instead.</p>
            </ConfirmDialog>
          )}
        </>
      )}
    </Loaded>
  );
}

function NoAlerts() {
  return (
    <div className="max-w-[64ch] px-4 py-6 text-ink-2">
      <p className="strong mb-1 text-ink-1">No alerts yet</p>
      <p>
        An alert watches a figure of your runs, for example tool errors above 10 % or no rollout for ten minutes. It notifies you here and,
        if you want, by a signed webhook. Choose “New alert”, or “Alert” above a chart.
      </p>
    </div>
  );
}

interface RowProps {
  alert: Alert;
  webhook: Webhook | undefined;
  current: boolean;
  onChange: () => void;
  onDelete: () => void;
}

function AlertRow({ alert, webhook, current, onChange, onDelete }: RowProps) {
  const { id, name, runs, condition, condition_text: text, muted, firing, author } = alert;
  const mute = useMutation({ mutationFn: () => saveAlert(id, { name, runs, condition, webhook: alert.webhook, muted: !muted }) });
  return (
    <li className={`grid grid-cols-[minmax(0,1fr)_auto] gap-x-4 gap-y-1 border-b border-line px-4 py-3 ${current ? 'bg-accent-wash' : ''}`}>
      <div className="min-w-0">
        <p className="flex flex-wrap items-baseline gap-x-3">
          <span className="strong">{name}</span>
          <State muted={muted} firing={firing.length} noun={condition.kind === 'crashes' ? 'environment' : 'run'} />
        </p>
        <p className="text-ink-2">
          {text}
          <span className="text-ink-3">
            {' '}
            · {condition.kind === 'crashes' ? 'hosted environments' : runs === null || runs === '*' ? 'all runs' : runs} ·{' '}
            {webhook ? `webhook ${webhook.name}` : 'only in these pages'} · by {author}
          </span>
        </p>
      </div>
      <div className="flex items-start gap-3 max-[560px]:col-span-2">
        <Link to="/alerts" search={{ tab: 'history', alert: id }} className="link" aria-label={`History of ${name}`}>
          History
        </Link>
        <button type="button" className="link" aria-label={`Edit ${name}`} onClick={onChange}>
          Edit
        </button>
        <button
          type="button"
          className="link"
          aria-label={`${muted ? 'Unmute' : 'Mute'} ${name}`}
          disabled={mute.isPending}
          onClick={() => mute.mutate()}
        >
          {muted ? 'Unmute' : 'Mute'}
        </button>
        <button type="button" className="link" aria-label={`Delete ${name}`} onClick={onDelete}>
          Delete
        </button>
      </div>
      {firing.length > 0 && <FiringRuns firing={firing} />}
      <p role="alert" className="col-span-2 text-bad empty:hidden">
        {mute.error?.message}
      </p>
    </li>
  );
}

function State({ muted, firing, noun }: { muted: boolean; firing: number; noun: string }) {
  return (
    <>
      {firing > 0 && (
        <span className="text-bad">
          <span aria-hidden="true">▲</span> Firing in {firing === 1 ? `one ${noun}` : `${firing} ${noun}s`}
        </span>
      )}
      {muted && <span className="chip">Muted</span>}
      {firing === 0 && !muted && <span className="text-ink-3">Not firing</span>}
    </>
  );
}

function FiringRuns({ firing }: Pick<Alert, 'firing'>) {
  const org = useQuery(meQuery).data?.org.name ?? '';
  return (
    <ul className="col-span-2 flex flex-col gap-1" aria-label="Where it fires">
      {firing.map(({ run, environment, since, evidence }) => (
        <li key={run?.id ?? environment} className="flex flex-wrap items-baseline gap-x-3">
          <SubjectLink org={org} subject={{ run, environment }} />
          <span>{evidence.text}</span>
          {evidence.q !== null && run !== null && (
            <Link
              to="/$org/runs/$run/rollouts"
              params={{ org, run: run.name }}
              search={{ q: evidence.q }}
              className="link"
              title={evidence.q}
            >
              Show the rollouts
            </Link>
          )}
          <span className="label">
            <Age iso={since} />
          </span>
        </li>
      ))}
    </ul>
  );
}
