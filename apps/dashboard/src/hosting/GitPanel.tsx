import { useMutation, useQuery } from '@tanstack/react-query';
import type { GitLinkView } from '@palestra/protocol';
import { type FormEvent, useState } from 'react';
import { type EnvironmentName, gitLinkQuery, linkGit, replaceGitSecret, unlinkGit } from '../data/hosting/hosting.ts';
import { Age } from '../frame/Age.tsx';
import { ConfirmDialog } from '../frame/ConfirmDialog.tsx';
import { CopyButton } from '../frame/CopyButton.tsx';
import { Loaded } from '../frame/Loaded.tsx';
import { ShownOnce } from '../frame/ShownOnce.tsx';
import { Panel } from '../settings/parts.tsx';

const NOTE = 'Copy it now. It is shown only once. Enter it as the secret of the webhook on your git server.';

/** The git repository whose pushes are deployed, and its webhook. */
export function GitPanel({ environment }: { environment: EnvironmentName }) {
  const link = useQuery(gitLinkQuery(environment));
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <Panel
      title="Git repository"
      about="Each push to the branch is a deploy. A private repository needs the secret GIT_TOKEN for https, or GIT_SSH_KEY for ssh."
    >
      <Loaded query={link}>
        {(data) => (
          <>
            {data.link && <Webhook environment={environment} link={data.link} onSecret={setSecret} />}
            {secret !== null && <ShownOnce title="Secret of the webhook" text={secret} note={NOTE} />}
            <LinkForm key={JSON.stringify(data.link)} environment={environment} link={data.link} onSecret={setSecret} />
          </>
        )}
      </Loaded>
    </Panel>
  );
}

function Webhook({
  environment,
  link,
  onSecret,
}: {
  environment: EnvironmentName;
  link: GitLinkView;
  onSecret: (secret: string | null) => void;
}) {
  const [asking, setAsking] = useState<'replace' | 'unlink' | null>(null);
  return (
    <>
      <div className="flex min-w-0 flex-wrap items-center gap-2">
        <span className="text-ink-3">Webhook</span>
        <code className="min-w-0 flex-1 [overflow-wrap:anywhere]">{link.webhook_url}</code>
        <CopyButton text={link.webhook_url} />
      </div>
      <p className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <span className="text-ink-3">
          {link.pushed_at === null ? (
            'No push has arrived yet.'
          ) : (
            <>
              Last push <Age iso={link.pushed_at} />.
            </>
          )}
          {!link.has_secret && ' Without a secret every push is refused.'}
        </span>
        <button type="button" className="link" onClick={() => setAsking('replace')}>
          Replace secret…
        </button>
        <button type="button" className="link" onClick={() => setAsking('unlink')}>
          Unlink…
        </button>
      </p>
      {asking === 'replace' && (
        <ConfirmDialog
          title="Replace the secret of the webhook?"
          action="Replace secret"
          onConfirm={async () => onSecret((await replaceGitSecret(environment)).secret)}
          onClose={() => setAsking(null)}
        >
          <p>Pushes that are signed with the old secret are refused from now on.</p>
        </ConfirmDialog>
      )}
      {asking === 'unlink' && (
        <ConfirmDialog
          title="Unlink the repository?"
          action="Unlink repository"
          onConfirm={async () => {
            await unlinkGit(environment);
            onSecret(null);
          }}
          onClose={() => setAsking(null)}
        >
          <p>Pushes are ignored from now on. Versions and channels stay as they are.</p>
        </ConfirmDialog>
      )}
    </>
  );
}

function LinkForm({
  environment,
  link,
  onSecret,
}: {
  environment: EnvironmentName;
  link: GitLinkView | null;
  onSecret: (secret: string | null) => void;
}) {
  const [url, setUrl] = useState(link?.url ?? '');
  const [ref, setRef] = useState(link?.ref ?? '');
  const [folder, setFolder] = useState(link?.subdirectory ?? '');
  const [channel, setChannel] = useState(link === null ? 'stable' : (link.channel ?? ''));
  const save = useMutation({
    mutationFn: () =>
      linkGit(environment, {
        url: url.trim(),
        ref: ref.trim() || null,
        subdirectory: folder.trim() || null,
        channel: channel.trim() || null,
      }),
    onSuccess: ({ secret }) => {
      if (secret !== null) onSecret(secret);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  const field = (label: string, value: string, onChange: (text: string) => void, props: object, className: string) => (
    <label className={`flex min-w-0 flex-col gap-[2px] ${className}`}>
      <span className="label">{label}</span>
      <input className="input mono w-full" value={value} onChange={(event) => onChange(event.target.value)} {...props} />
    </label>
  );
  return (
    <>
      <form onSubmit={submit} className="flex flex-wrap items-end gap-2">
        {field(
          'Repository URL',
          url,
          setUrl,
          { required: true, maxLength: 2_000, placeholder: 'https://git.acme.example/envs.git' },
          'min-w-[240px] flex-1',
        )}
        {field('Branch', ref, setRef, { maxLength: 250, placeholder: 'Default branch' }, 'w-[140px]')}
        {field('Folder', folder, setFolder, { maxLength: 1_000, placeholder: 'Root' }, 'w-[140px]')}
        {field('Promotes channel', channel, setChannel, { maxLength: 32, placeholder: 'None' }, 'w-[120px]')}
        <button type="submit" className="button" disabled={save.isPending}>
          {link === null ? 'Link repository' : 'Save link'}
        </button>
      </form>
      <p role="alert" className="text-bad empty:hidden">
        {save.error?.message}
      </p>
    </>
  );
}
