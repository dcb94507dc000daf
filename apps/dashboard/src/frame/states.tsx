import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useState } from 'react';
import { ApiError } from '../data/http.ts';
import { chooseOrganisation, organisationOfAddress } from '../data/organisation.ts';
import { login } from '../data/queries.ts';
import { CopyButton } from './CopyButton.tsx';

function State({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="mx-auto flex max-w-[560px] flex-col gap-3 px-4 pt-[12vh]">
      <h2 className="text-[18px] leading-[24px] strong">{title}</h2>
      {children}
    </div>
  );
}

export function NotFound() {
  return (
    <State title="Page not found">
      <p className="text-ink-2">There is no page at this address.</p>
      <p>
        <Link to="/" className="link">
          Go to the runs
        </Link>
      </p>
    </State>
  );
}

const titles: Record<string, string> = {
  run_not_found: 'Run not found',
  rollout_not_found: 'Rollout not found',
  environment_not_found: 'Environment not found',
  session_not_found: 'Session not found',
  network: 'The server does not respond',
  account_needed: 'For members only',
  organisation_not_found: 'Organisation not found',
};

/** Shown when an open page is deleted. */
export function Deleted({ what }: { what: 'run' | 'rollout' }) {
  return (
    <State title={`This ${what} was deleted`}>
      <p className="text-ink-2">A member deleted it, or its retention period ended, while this page was open.</p>
      <p>
        <Link to="/" className="button">
          Go to the runs
        </Link>
      </p>
    </State>
  );
}

/** What happened and what to do, with the error code and id to copy. */
export function ErrorState({ error, retry }: { error: unknown; retry?: () => void }) {
  const known = error instanceof ApiError ? error : null;
  if (known?.status === 401) return <SignIn detail={known.code === 'key_revoked' ? known.message : null} />;
  const text = error instanceof Error ? error.message : 'This page has an internal error.';
  return (
    <State title={titles[known?.code ?? ''] ?? 'The page could not be loaded'}>
      <p className="text-ink-2">{text}</p>
      {known?.code !== 'network' && <p className="text-ink-3">Nothing changed on the server.</p>}
      <div className="flex flex-wrap items-center gap-2">
        {retry && known?.code !== 'account_needed' && (
          <button type="button" className="button" onClick={retry}>
            Try again
          </button>
        )}
        {known?.code !== 'account_needed' && (
          <Link to="/" className="button">
            Go to the runs
          </Link>
        )}
        {known && (
          <CopyButton
            text={[`${known.code} (${known.status})`, known.id && `error id ${known.id}`, `at ${location.href}`].filter(Boolean).join(' ')}
            label={known.id === null ? `Copy ${known.code}` : 'Copy error id'}
          />
        )}
      </div>
    </State>
  );
}

export const CrashState = ({ error, reset }: { error: unknown; reset: () => void }) => <ErrorState error={error} retry={reset} />;

/** For an address of an organisation that does not exist or that the reader is not a member of; the two are not told apart. */
export function NoOrganisation({ name }: { name: string }) {
  return (
    <State title="Organisation not found">
      <p className="text-ink-2">
        There is no organisation <b className="[overflow-wrap:anywhere]">{name}</b>, or this browser is not signed in as one of its members.
        An API key, and a sign-in link from an owner, open one organisation only.
      </p>
      <p>
        <a href="/" className="button" onClick={() => chooseOrganisation(null)}>
          Go to my runs
        </a>
      </p>
      <SignInForm label="Or sign in with an API key of this organisation" />
    </State>
  );
}

/** The sign-in form. `detail`: why the reader is not signed in. */
export function SignIn({ detail }: { detail: ReactNode }) {
  return (
    <State title="Sign in to Palestra">
      <p className="text-ink-2">
        Palestra hosts environments for training language-model agents with reinforcement learning. It keeps every rollout of a run and
        shows how its rewards develop, where rollouts fail and why.
      </p>
      {detail !== null && <p className="text-bad">{detail}</p>}
      <p className="text-ink-2">
        Open the sign-in link that the server printed when it started (<code>npm start</code> or <code>palestra up</code>), or the one that
        an owner of your organisation created under Settings, Members. You can also paste an API key.
      </p>
      <p className="text-ink-3">
        A sign-in link works once and expires after a day. If your link opened this page, it was used or has expired: ask for a new one.
      </p>
      <SignInForm label="API key (the value of OPENREWARD_API_KEY)" />
    </State>
  );
}

function SignInForm({ label }: { label: string }) {
  const client = useQueryClient();
  const [key, setKey] = useState('');
  const [problem, setProblem] = useState<string | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setProblem(null);
    try {
      await login(key.trim());
      // The key decides the organisation, unless the address does.
      if (organisationOfAddress(location) === null) chooseOrganisation(null);
      await client.resetQueries();
    } catch (error) {
      setProblem(error instanceof ApiError && error.status === 401 ? 'This API key is unknown or was revoked.' : (error as Error).message);
    }
  };
  return (
    <form onSubmit={(event) => void submit(event)} className="flex flex-col gap-2">
      <label className="label" htmlFor="api-key">
        {label}
      </label>
      <div className="flex gap-2">
        <input
          id="api-key"
          className="input mono min-w-0 flex-1"
          type="password"
          autoComplete="current-password"
          required
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
        <button type="submit" className="button primary">
          Sign in
        </button>
      </div>
      <p role="alert" className="text-bad">
        {problem}
      </p>
    </form>
  );
}

/** Placeholder rows while data loads. They appear after 300 ms. */
export function SkeletonRows({ count = 12 }: { count?: number }) {
  return (
    <div role="status" aria-busy="true" aria-label="Loading">
      {Array.from({ length: count }, (_, i) => (
        <div key={i} className="flex h-[28px] items-center border-b border-line px-4">
          <div className="skeleton h-[10px]" style={{ width: `${40 + ((i * 37) % 45)}%` }} />
        </div>
      ))}
    </div>
  );
}
