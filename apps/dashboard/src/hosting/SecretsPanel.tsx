import { useMutation, useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { deleteSecret, type EnvironmentName, secretsQuery, setSecret } from '../data/hosting/hosting.ts';
import { Age } from '../frame/Age.tsx';
import { ConfirmDialog } from '../frame/ConfirmDialog.tsx';
import { Loaded } from '../frame/Loaded.tsx';
import { Panel } from '../settings/parts.tsx';

/** Names of the secrets. A value can be set, and is never shown. */
export function SecretsPanel({ environment }: { environment: EnvironmentName }) {
  const secrets = useQuery(secretsQuery(environment));
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const [deleting, setDeleting] = useState<string | null>(null);
  const save = useMutation({
    mutationFn: () => setSecret(environment, name.trim(), value),
    onSuccess: () => {
      setName('');
      setValue('');
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <Panel
      title="Secrets"
      about="Each secret is a file in the folder PALESTRA_SECRETS_DIR of the instances that start afterwards. Values are stored encrypted, never shown, and masked in logs."
    >
      <Loaded query={secrets}>
        {({ secrets: all }) =>
          all.length === 0 ? (
            <p className="text-ink-3">No secrets.</p>
          ) : (
            <ul aria-label="Secrets" className="border-t border-line">
              {all.map((secret) => (
                <li key={secret.name} className="flex min-h-[28px] items-center gap-3 border-b border-line">
                  <code className="min-w-0 flex-1 truncate">{secret.name}</code>
                  <span className="text-ink-3">
                    Set <Age iso={secret.updated_at} />
                  </span>
                  <button
                    type="button"
                    className="link"
                    onClick={() => setDeleting(secret.name)}
                    aria-label={`Remove the secret ${secret.name}`}
                  >
                    Remove…
                  </button>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      <form onSubmit={submit} className="flex flex-wrap items-end gap-2">
        <label className="flex w-[220px] flex-col gap-[2px]">
          <span className="label">Secret name</span>
          <input
            className="input mono"
            required
            maxLength={128}
            pattern="[A-Za-z_][A-Za-z0-9_]*"
            title="Letters, digits and _, not beginning with a digit"
            placeholder="API_KEY"
            autoComplete="off"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <label className="flex min-w-[220px] flex-1 flex-col gap-[2px]">
          <span className="label">Value</span>
          <input
            className="input mono"
            type="password"
            required
            maxLength={100_000}
            autoComplete="new-password"
            value={value}
            onChange={(event) => setValue(event.target.value)}
          />
        </label>
        <button type="submit" className="button" disabled={save.isPending}>
          Set secret
        </button>
      </form>
      <p role="alert" className="text-bad empty:hidden">
        {save.error?.message}
      </p>
      {deleting !== null && (
        <ConfirmDialog
          title={`Remove ${deleting}?`}
          action="Remove secret"
          onConfirm={() => deleteSecret(environment, deleting)}
          onClose={() => setDeleting(null)}
        >
          <p>Its value is deleted. Instances that run keep it until they end.</p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}
