import type { NewShare, Share } from '@palestra/protocol';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { createShare, sharesQuery, revokeShare } from '../data/shares.ts';
import { formatAbsolute } from '../format/time.ts';
import { CopyButton } from './CopyButton.tsx';
import { Popover } from './Popover.tsx';
import { ShownOnce } from './ShownOnce.tsx';

/** What a page shares. */
export type ShareTarget =
  /** `message`: index of the message at which the links open; absent or null: the beginning. */
  | { kind: 'rollout'; rollout: string; message?: number | null | undefined }
  | { kind: 'run'; run: string }
  /** Rollouts of the run that match now and later. */
  | { kind: 'query'; run: string; q: string; address?: string }
  | { kind: 'runs'; runs: readonly string[] }
  | { kind: 'rollouts'; rollouts: readonly string[] };

const NAMES: Record<ShareTarget['kind'], string> = {
  rollout: 'rollout',
  run: 'run',
  query: 'list',
  runs: 'comparison',
  rollouts: 'comparison',
};

/** What everyone with the link can read, and what not. */
const COVERED: Record<ShareTarget['kind'], string> = {
  rollout: 'this rollout with its texts and images, and nothing else of the organisation.',
  run: 'the current figures and curves of this overview, but no list of rollouts, no texts and no other run.',
  query: 'the task, reward and stop reason of the rollouts that match at that time. They cannot change the query or see other rollouts.',
  runs: 'the current figures, curves and tasks of this comparison, but no rollouts, no settings and no other run.',
  rollouts: 'these rollouts with their texts and images, and nothing else of the organisation.',
};

/** Shares a page: its address for members, a link with an expiry for other people. */
export function ShareButton({ target }: { target: ShareTarget }) {
  return (
    <Popover label={`Share this ${NAMES[target.kind]}`} button="Share" align="end">
      <SharePanel target={target} />
    </Popover>
  );
}

/** The content of `ShareButton`. */
export function SharePanel({ target }: { target: ShareTarget }) {
  const message = target.kind === 'rollout' ? (target.message ?? null) : null;
  const address = addressOf(target);
  return (
    <div className="flex flex-col gap-4">
      <section className="flex flex-col gap-1">
        <h3 className="strong">For members of the organisation</h3>
        <span className="flex items-center gap-2">
          <input
            className="input mono min-w-0 flex-1"
            readOnly
            aria-label={`Address of this ${NAMES[target.kind]}`}
            value={address}
            onFocus={(event) => event.target.select()}
          />
          <CopyButton text={address} />
        </span>
        {message !== null && <span className="label">Opens at message {message}.</span>}
      </section>
      <NewLink target={target} />
      <Links target={target} />
    </div>
  );
}

/** Where members find it. */
function addressOf(target: ShareTarget): string {
  if (target.kind === 'query' && target.address !== undefined) return target.address;
  if (target.kind !== 'rollout') return location.href;
  return `${location.origin}/rollout/${target.rollout}${target.message == null ? '' : `#m-${target.message}`}`;
}

function bodyOf(target: ShareTarget, withRollouts: boolean): NewShare {
  switch (target.kind) {
    case 'rollout':
      return { rollout: target.rollout, message: target.message ?? null };
    case 'run':
      return { run: target.run, with_rollouts: withRollouts };
    case 'query':
      return { run: target.run, q: target.q, with_rollouts: withRollouts };
    case 'runs':
      return { runs: [...target.runs] };
    case 'rollouts':
      return { rollouts: [...target.rollouts] };
  }
}

const partOf = (target: ShareTarget): { rollout?: string; run?: string } => {
  if (target.kind === 'rollout') return { rollout: target.rollout };
  if (target.kind === 'rollouts') return { rollout: target.rollouts[0]! };
  return { run: target.kind === 'runs' ? target.runs[0]! : target.run };
};

/** Links to what the page shows, among those that name its first part. */
const isOf = (target: ShareTarget, share: Share): boolean =>
  share.kind === target.kind &&
  (target.kind !== 'query' || share.q === target.q.trim()) &&
  (target.kind !== 'runs' ||
    isSameSet(
      target.runs,
      share.runs.map(({ id }) => id),
    )) &&
  (target.kind !== 'rollouts' || isSameSet(target.rollouts, share.rollouts));
const isSameSet = (a: readonly string[], b: readonly string[]): boolean => a.length === b.length && a.every((one) => b.includes(one));

function NewLink({ target }: { target: ShareTarget }) {
  const [days, setDays] = useState('30');
  const [withRollouts, setWithRollouts] = useState(false);
  const create = useMutation({ mutationFn: createShare });
  const shares = useQuery(sharesQuery(partOf(target))).data;
  // Hidden again after it was revoked.
  const created = shares?.some(({ id }) => id === create.data?.id) ? create.data : undefined;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate({ ...bodyOf(target, withRollouts), expires_in_days: Number(days) });
  };
  return (
    <section className="flex flex-col gap-2">
      <h3 className="strong">For people without an account</h3>
      <p className="text-ink-2">Everyone with the link can read {COVERED[target.kind]}</p>
      <form onSubmit={submit} className="flex flex-col gap-2">
        {(target.kind === 'run' || target.kind === 'query') && (
          <label className="flex items-baseline gap-2">
            <input type="checkbox" checked={withRollouts} onChange={(event) => setWithRollouts(event.target.checked)} />
            {target.kind === 'run'
              ? 'Include every rollout of the run, with texts and images'
              : 'Include the rollouts themselves, with texts and images'}
          </label>
        )}
        <div className="flex items-center gap-2">
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
        </div>
      </form>
      <p className="label">
        Chats that preview the link show its title, main figure and a small chart. You can revoke the link here or under Settings, Shared
        links.
      </p>
      <p role="alert" className="text-bad empty:hidden">
        {create.error?.message}
      </p>
      {created && <ShownOnce title={`Valid until ${formatAbsolute(created.expires_at)}`} text={created.url} />}
    </section>
  );
}

function Links({ target }: { target: ShareTarget }) {
  const shares = useQuery(sharesQuery(partOf(target)));
  if (shares.error) return <p className="text-bad">{shares.error.message}</p>;
  const own = shares.data?.filter((share) => isOf(target, share)) ?? [];
  if (own.length === 0) return null;
  return (
    <section className="flex flex-col gap-1">
      <h3 className="label">Valid links</h3>
      <ul>
        {own.map((share) => (
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
      {share.with_rollouts && <span className="label flex-none">With rollouts</span>}
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
