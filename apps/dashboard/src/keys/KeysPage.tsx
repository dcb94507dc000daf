import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { ApiKeyView } from '@palestra/protocol';
import { type FormEvent, useState } from 'react';
import { apiKeysQuery, createApiKey, keys, revokeApiKey } from '../data/queries.ts';
import { Age } from '../frame/Age.tsx';
import { CopyButton } from '../frame/CopyButton.tsx';
import { Crumb, TopBar } from '../frame/page.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';

const columns = 'grid-cols-[minmax(140px,1.5fr)_140px_minmax(180px,2fr)_100px_100px_190px]';

function Revoke({ apiKey }: { apiKey: ApiKeyView }) {
  const client = useQueryClient();
  const [asked, setAsked] = useState(false);
  const revoke = useMutation({
    mutationFn: () => revokeApiKey(apiKey.id),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.apiKeys }),
  });
  if (apiKey.revoked_at) return <span className="text-ink-3">revoked</span>;
  if (revoke.error) return <span className="text-bad">{revoke.error.message}</span>;
  if (!asked)
    return (
      <button type="button" className="link" onClick={() => setAsked(true)}>
        Revoke
      </button>
    );
  return (
    <span className="flex items-center gap-3">
      <button type="button" className="text-bad strong hover:underline" disabled={revoke.isPending} onClick={() => revoke.mutate()}>
        Revoke {apiKey.prefix}… now
      </button>
      <button type="button" className="link" onClick={() => setAsked(false)}>
        Keep
      </button>
    </span>
  );
}

function CreateKey() {
  const client = useQueryClient();
  const [name, setName] = useState('');
  const create = useMutation({
    mutationFn: createApiKey,
    onSuccess: async () => {
      setName('');
      await client.invalidateQueries({ queryKey: keys.apiKeys });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate(name.trim());
  };
  return (
    <div className="border-b border-line px-4 py-3">
      <form onSubmit={submit} className="flex items-center gap-2">
        <label htmlFor="key-name" className="sr-only">
          Name of the new key
        </label>
        <input
          id="key-name"
          className="input w-[280px]"
          required
          maxLength={100}
          placeholder="Name of a new key, such as trainer-2"
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <button type="submit" className="button primary" disabled={create.isPending}>
          Create key
        </button>
        <span role="alert" className="text-bad">
          {create.error?.message}
        </span>
      </form>
      {create.data && (
        <div className="mt-3 flex flex-wrap items-center gap-2" role="status">
          <span className="strong">{create.data.name}</span>
          <code className="rounded-[3px] bg-good-wash px-2 py-1 select-all">{create.data.key}</code>
          <CopyButton text={create.data.key} />
          <span className="text-ink-3">It is shown this once: only its hash is kept.</span>
        </div>
      )}
    </div>
  );
}

export function KeysPage() {
  const apiKeys = useQuery(apiKeysQuery);
  return (
    <>
      <TopBar title="API keys" crumbs={<Crumb>API keys</Crumb>} />
      {apiKeys.error ? (
        <ErrorState error={apiKeys.error} retry={() => void apiKeys.refetch()} />
      ) : !apiKeys.data ? (
        <SkeletonRows count={4} />
      ) : (
        <>
          <CreateKey />
          <div role="table" aria-label="API keys" className="min-w-[820px]">
            <div role="row" className={`grid border-b border-line px-2 ${columns}`}>
              {['Name', 'Begins with', 'May use', 'Created', 'Last used', ''].map((head) => (
                <span key={head} role="columnheader" className="head-cell">
                  {head || <span className="sr-only">Revoke</span>}
                </span>
              ))}
            </div>
            {apiKeys.data.keys.map((apiKey) => (
              <div key={apiKey.id} role="row" className={`row hover px-2 ${columns} ${apiKey.revoked_at ? 'text-ink-3' : ''}`}>
                <span role="cell" className="cell strong" title={apiKey.name}>
                  {apiKey.name}
                </span>
                <span role="cell" className="cell mono">
                  {apiKey.prefix}…
                </span>
                <span role="cell" className="cell text-ink-2">
                  {apiKey.scopes.join(', ')}
                </span>
                <span role="cell" className="cell text-ink-3">
                  <Age iso={apiKey.created_at} />
                </span>
                <span role="cell" className="cell text-ink-3">
                  {apiKey.last_used_at ? <Age iso={apiKey.last_used_at} /> : 'never'}
                </span>
                <span role="cell" className="cell">
                  <Revoke apiKey={apiKey} />
                </span>
              </div>
            ))}
          </div>
        </>
      )}
    </>
  );
}
