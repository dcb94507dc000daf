import type { Webhook } from '@palestra/protocol';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { changeWebhook, createWebhook, deleteWebhook, replaceWebhookSecret, testWebhook, webhooksQuery } from '../data/alerts.ts';
import { organisationQuery } from '../data/accounts.ts';
import { ConfirmDialog } from '../frame/ConfirmDialog.tsx';
import { Loaded } from '../frame/Loaded.tsx';
import { ShownOnce } from '../frame/ShownOnce.tsx';
import { Deliveries } from './Deliveries.tsx';

/** Receivers of webhooks, and the deliveries to the one in the address. */
export function WebhooksTab() {
  const webhooks = useQuery(webhooksQuery);
  const { webhook: chosen } = useSearch({ from: '/alerts' });
  const owns = useQuery(organisationQuery).data?.role === 'owner';
  return (
    <Loaded query={webhooks}>
      {(rows) => {
        const current = rows.find(({ id }) => id === chosen) ?? rows[0];
        return (
          <>
            {owns ? (
              <NewWebhook />
            ) : (
              <p className="border-b border-line bg-paper-1 px-4 py-2 text-ink-2">
                Only owners of the organisation can add or change webhooks.
              </p>
            )}
            {rows.length === 0 && <p className="px-4 py-4 text-ink-3">No webhooks yet. Alerts notify you only in these pages.</p>}
            <ul aria-label="Webhooks">
              {rows.map((webhook) => (
                <WebhookRow key={webhook.id} webhook={webhook} owns={owns} current={rows.length > 1 && webhook.id === current?.id} />
              ))}
            </ul>
            {current && <Deliveries webhook={current} />}
          </>
        );
      }}
    </Loaded>
  );
}

const SECRET_NOTE = 'Copy it now. It is shown only once. Your receiver verifies the signature of each message with it.';

function NewWebhook() {
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const create = useMutation({
    mutationFn: createWebhook,
    onSuccess: () => {
      setName('');
      setUrl('');
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate({ name: name.trim(), url: url.trim() });
  };
  return (
    <section aria-label="New webhook" className="flex flex-col gap-3 border-b border-line px-4 py-3">
      <form onSubmit={submit} className="flex max-w-[860px] flex-wrap items-end gap-2">
        <label className="flex w-[200px] flex-col gap-[2px]">
          <span className="label">Webhook name</span>
          <input
            className="input"
            required
            maxLength={200}
            placeholder="on-call"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <label className="flex min-w-[240px] flex-1 flex-col gap-[2px]">
          <span className="label">URL</span>
          <input
            className="input mono"
            type="url"
            required
            maxLength={2_000}
            placeholder="https://example.com/palestra"
            value={url}
            onChange={(event) => setUrl(event.target.value)}
          />
        </label>
        <button type="submit" className="button primary" disabled={create.isPending}>
          Add webhook
        </button>
      </form>
      <p role="alert" className="text-bad empty:hidden">
        {create.error?.message}
      </p>
      {create.data && (
        <div className="max-w-[860px]">
          <ShownOnce title="Secret of the new webhook" text={create.data.secret} note={SECRET_NOTE} />
        </div>
      )}
    </section>
  );
}

function WebhookRow({ webhook, owns, current }: { webhook: Webhook; owns: boolean; current: boolean }) {
  const { id, name, url, enabled, waiting } = webhook;
  const [asking, setAsking] = useState<'replace' | 'delete' | null>(null);
  const test = useMutation({ mutationFn: () => testWebhook(id) });
  const toggle = useMutation({ mutationFn: () => changeWebhook(id, { enabled: !enabled }) });
  const replace = useMutation({ mutationFn: () => replaceWebhookSecret(id) });
  const failed = test.error ?? toggle.error;
  return (
    <li className={`flex flex-col gap-1 border-b border-line px-4 py-3 ${current ? 'bg-accent-wash' : ''}`}>
      <div className="flex flex-wrap items-baseline gap-x-4 gap-y-1">
        <Link to="/alerts" search={{ tab: 'webhooks', webhook: id }} className="strong hover:underline">
          {name}
        </Link>
        <code className="min-w-0 break-all text-ink-2">{url}</code>
        {!enabled && <span className="text-bad">Disabled: {webhook.disabled_reason}</span>}
        {waiting > 0 && <span className="text-ink-3">{waiting} waiting</span>}
        <span className="ml-auto flex flex-wrap gap-x-3 max-[760px]:ml-0">
          <button
            type="button"
            className="link"
            disabled={!enabled || test.isPending}
            aria-label={`Send a test to ${name}`}
            onClick={() => test.mutate()}
          >
            Send a test
          </button>
          {owns && (
            <>
              <button
                type="button"
                className="link"
                aria-label={`${enabled ? 'Disable' : 'Enable'} ${name}`}
                onClick={() => toggle.mutate()}
              >
                {enabled ? 'Disable' : 'Enable'}
              </button>
              <button type="button" className="link" aria-label={`Replace secret of ${name}`} onClick={() => setAsking('replace')}>
                Replace secret
              </button>
              <button type="button" className="link" aria-label={`Delete ${name}`} onClick={() => setAsking('delete')}>
                Delete
              </button>
            </>
          )}
        </span>
      </div>
      <p role="alert" className="text-bad empty:hidden">
        {failed?.message}
      </p>
      {replace.data && (
        <div className="max-w-[860px]">
          <ShownOnce title={`New secret of ${name}`} text={replace.data.secret} note={SECRET_NOTE} />
        </div>
      )}
      {asking === 'replace' && (
        <ConfirmDialog
          title={`Replace the secret of ${name}?`}
          action="Replace secret"
          onConfirm={() => replace.mutateAsync()}
          onClose={() => setAsking(null)}
        >
          <p>For 24 hours both secrets sign each message, so you have time to change the receiver.</p>
        </ConfirmDialog>
      )}
      {asking === 'delete' && (
        <ConfirmDialog
          title={`Delete ${name}?`}
          action="Delete webhook"
          onConfirm={() => deleteWebhook(id)}
          onClose={() => setAsking(null)}
        >
          <p>This also deletes its deliveries. Its alerts will notify you only in these pages.</p>
        </ConfirmDialog>
      )}
    </li>
  );
}
