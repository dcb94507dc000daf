import type { NewKey } from '@palestra/protocol';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { createApiKey } from '../data/accounts.ts';
import { CopyButton } from '../frame/CopyButton.tsx';
import { ShownOnce } from '../frame/ShownOnce.tsx';

type Scope = NonNullable<NewKey['scopes']>[number];
const SCOPES: readonly [Scope, description: string][] = [
  ['sessions', 'Open sessions, call tools, read slots'],
  ['environments', 'Publish, change and delete environments and their files'],
  ['rollouts', 'Upload, read, annotate, export and share rollouts and runs'],
  ['keys', 'Manage keys, members and settings; not for trainers'],
];
const TRAINER_SCOPES: readonly Scope[] = ['sessions', 'environments', 'rollouts'];

const exportLines = (key: string) => {
  const { origin } = location;
  return [
    `export OPENREWARD_URL=${origin}`,
    `export OPENREWARD_API_URL=${origin}`,
    `export OPENREWARD_SESSION_URL=${origin}`,
    `export OPENREWARD_API_KEY=${key}`,
  ].join('\n');
};

const EXPIRY_DAYS = [1, 7, 30, 90, 365];
const expiryOf = (days: string) => (days === '' ? null : new Date(Date.now() + Number(days) * 86_400_000).toISOString());

/** Creates a key with a name, scopes, a limit of sessions and an expiry. Then shows the key once. */
export function CreateKey() {
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<readonly Scope[]>(TRAINER_SCOPES);
  const [limit, setLimit] = useState('');
  const [expiry, setExpiry] = useState('');
  const create = useMutation({ mutationFn: createApiKey, onSuccess: () => setName('') });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate({
      name: name.trim(),
      scopes: [...scopes],
      max_sessions: limit === '' ? null : Number(limit),
      expires_at: expiryOf(expiry),
    });
  };
  const lines = create.data && exportLines(create.data.key);
  return (
    <section aria-label="New key" className="flex flex-none flex-wrap gap-x-8 gap-y-3 border-b border-line px-4 py-3">
      <form onSubmit={submit} className="flex w-[680px] max-w-full flex-col gap-3">
        <div className="flex flex-wrap items-end gap-2">
          <label className="flex min-w-[200px] flex-1 flex-col gap-[2px]">
            <span className="label">Key name</span>
            <input
              className="input"
              required
              maxLength={100}
              placeholder="trainer-2"
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          </label>
          <label className="flex w-[170px] flex-col gap-[2px]">
            <span className="label">Concurrent sessions</span>
            <input
              className="input num"
              type="number"
              min={1}
              step={1}
              placeholder="Server default"
              value={limit}
              onChange={(event) => setLimit(event.target.value)}
            />
          </label>
          <label className="flex w-[150px] flex-col gap-[2px]">
            <span className="label">Expires after</span>
            <select className="input" value={expiry} onChange={(event) => setExpiry(event.target.value)}>
              <option value="">Never</option>
              {EXPIRY_DAYS.map((days) => (
                <option key={days} value={days}>
                  {days === 1 ? '1 day' : `${days} days`}
                </option>
              ))}
            </select>
          </label>
          <button type="submit" className="button primary" disabled={create.isPending || scopes.length === 0}>
            Create key
          </button>
        </div>
        <fieldset className="flex flex-col gap-[2px]">
          <legend className="label mb-1">Scopes</legend>
          {SCOPES.map(([scope, description]) => (
            <label key={scope} className="grid min-h-[24px] grid-cols-[20px_96px_minmax(0,1fr)] items-center">
              <input
                type="checkbox"
                className="justify-self-start accent-[var(--accent)]"
                checked={scopes.includes(scope)}
                onChange={({ target }) => setScopes((old) => (target.checked ? [...old, scope] : old.filter((other) => other !== scope)))}
              />
              <span>{scope}</span>
              <span className="text-ink-3">{description}</span>
            </label>
          ))}
        </fieldset>
        <p role="alert" className="text-bad empty:hidden">
          {create.error?.message ?? (scopes.length === 0 ? 'Choose at least one scope.' : '')}
        </p>
      </form>
      {create.data && lines !== undefined && (
        <div className="min-w-[320px] max-w-[720px] flex-1">
          <ShownOnce title={create.data.name} text={create.data.key}>
            <span className="flex items-center justify-between">
              <span className="label">For the shell that starts the trainer</span>
              <CopyButton text={lines} label="Copy lines" />
            </span>
            <pre className="code-block bg-paper-0" tabIndex={0} aria-label="Lines for the shell that starts the trainer">
              {lines}
            </pre>
          </ShownOnce>
        </div>
      )}
    </section>
  );
}
