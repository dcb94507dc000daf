import type { Share } from '@palestra/protocol';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { createShare, sharesQuery, revokeShare } from '../data/shares.ts';
import { formatAbsolute } from '../format/time.ts';
import { CopyButton } from './CopyButton.tsx';
import { Popover } from './Popover.tsx';
import { ShownOnce } from './ShownOnce.tsx';

interface ShareProps {
  /** Id of the rollout. */
  rollout: string;
  /** Index of the message at which the links open; absent or null: the beginning. */
  message?: number | null | undefined;
}

/** Shares a rollout: its address for members, a link with an expiry for other people. */
export function ShareButton(props: ShareProps) {
  return (
    <Popover label="Share this rollout" button="Share" align="end">
      <SharePanel {...props} />
    </Popover>
  );
}

function SharePanel({ rollout, message = null }: ShareProps) {
  const address = `${location.origin}/rollout/${rollout}${message === null ? '' : `#m-${message}`}`;
  return (
    <div className="flex flex-col gap-4">
      <section className="flex flex-col gap-1">
        <h3 className="strong">For members of the organisation</h3>
        <span className="flex items-center gap-2">
          <input
            className="input mono min-w-0 flex-1"
            readOnly
            aria-label="Address of this rollout"
            value={address}
            onFocus={(event) => event.target.select()}
          />
          <CopyButton text={address} />
        </span>
        {message !== null && <span className="label">Opens at message {message}.</span>}
      </section>
      <NewLink rollout={rollout} message={message} />
      <Links rollout={rollout} />
    </div>
  );
}

function NewLink({ rollout, message }: { rollout: string; message: number | null }) {
  const [days, setDays] = useState('30');
  const create = useMutation({ mutationFn: createShare });
  const shares = useQuery(sharesQuery(rollout)).data;
  // Hidden again after it was revoked.
  const created = shares?.some(({ id }) => id === create.data?.id) ? create.data : undefined;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate({ rollout, message, expires_in_days: Number(days) });
  };
  return (
    <section className="flex flex-col gap-2">
      <h3 className="strong">For people without an account</h3>
      <p className="text-ink-2">
        Everyone with the link can read this rollout with its texts and images, and nothing else of the organisation.
      </p>
      <form onSubmit={submit} className="flex items-center gap-2">
        <label className="flex items-center gap-2">
          Expires after
          <input
            className="input num w-[64px]"
            type="number"
            required
            min={1}
            max={365}
            step={1}
            value={days}
            onChange={(event) => setDays(event.target.value)}
          />
          days
        </label>
        <span className="flex-1" />
        <button type="submit" className="button primary" disabled={create.isPending}>
          Create link
        </button>
      </form>
      <p role="alert" className="text-bad empty:hidden">
        {create.error?.message}
      </p>
      {created && <ShownOnce title={`Valid until ${formatAbsolute(created.expires_at)}`} text={created.url} />}
    </section>
  );
}

function Links({ rollout }: { rollout: string }) {
  const shares = useQuery(sharesQuery(rollout));
  if (shares.error) return <p className="text-bad">{shares.error.message}</p>;
  if (!shares.data || shares.data.length === 0) return null;
  return (
    <section className="flex flex-col gap-1">
      <h3 className="label">Valid links</h3>
      <ul>
        {shares.data.map((share) => (
          <LinkRow key={share.id} share={share} />
        ))}
      </ul>
    </section>
  );
}

function LinkRow({ share }: { share: Share }) {
  const revoke = useMutation({ mutationFn: () => revokeShare(share.id) });
  const until = formatAbsolute(share.expires_at);
  return (
    <li className="flex min-h-[28px] items-center gap-2 border-b border-line">
      <span className="min-w-0 flex-1 truncate" title={`${share.author}, until ${until}`}>
        {share.author} <span className="text-ink-3">until {until}</span>
      </span>
      <button
        type="button"
        className="link flex-none"
        disabled={revoke.isPending}
        aria-label={`Revoke the link of ${share.author} until ${until}`}
        onClick={() => revoke.mutate()}
      >
        {revoke.error ? revoke.error.message : 'Revoke'}
      </button>
    </li>
  );
}
