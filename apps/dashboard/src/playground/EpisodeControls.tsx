import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { SessionView } from '@palestra/protocol';
import { useEffect, useRef, useState } from 'react';
import { newSid, openSession, type SessionChoice } from '../data/playground.ts';
import { discoveryQuery } from '../data/queries.ts';
import { endSession } from '../data/sessions.ts';
import { choiceOf, type EpisodeEnd, nextChoice } from './episode-end.ts';

interface ControlsProps {
  environment: { owner: string; name: string };
  session: SessionView;
  /** The episode runs and has calls: a second click confirms that it ends. */
  confirm: boolean;
}

/** Plays the task again, or the next one of the split. Both end this session, which releases its slot; its calls stay in the ledger. */
export function EpisodeControls({ environment, session, confirm }: ControlsProps) {
  const client = useQueryClient();
  const navigate = useNavigate({ from: '/environments/$owner/$name/play' });
  const variants = useQuery(discoveryQuery(environment.owner, environment.name)).data?.variants;
  const [asked, setAsked] = useState<'restart' | 'next' | null>(null);
  const unmounted = useRef(new AbortController());
  useEffect(() => {
    unmounted.current = new AbortController();
    return () => unmounted.current.abort();
  }, []);
  const open = useMutation({
    mutationFn: async (choice: SessionChoice) => {
      if (session.live) await endSession(client, session.sid);
      return openSession(newSid(), choice, unmounted.current.signal);
    },
    onSuccess: (sid, { variant, task }) =>
      navigate({ search: { variant, sid, ...('spec' in task ? {} : { split: task.split, task: task.index }) } }),
  });
  const choice = choiceOf(session);
  if (choice === null) return null;
  const { task } = choice;
  const splits = variants?.find(({ name }) => name === session.variant)?.splits;
  const count = 'spec' in task ? null : (splits?.find(({ name }) => name === task.split)?.num_tasks ?? null);
  const next = nextChoice(choice, count);
  const button = (name: 'restart' | 'next', label: string, confirmation: string, target: SessionChoice | string) => (
    <button
      type="button"
      className={`button ${asked === name ? 'text-bad' : ''}`}
      disabled={open.isPending || typeof target === 'string'}
      title={typeof target === 'string' ? target : undefined}
      onClick={() => {
        if (typeof target === 'string') return;
        if (confirm && asked !== name) return setAsked(name);
        setAsked(null);
        open.mutate(target);
      }}
      onBlur={() => setAsked(null)}
    >
      {asked === name ? confirmation : label}
    </button>
  );
  return (
    <span className="flex flex-wrap items-center gap-2">
      {button('restart', 'Restart', 'End this episode and restart', choice)}
      {button('next', 'Next task', 'End this episode and continue', next)}
      <span role="status" className="text-ink-3 empty:hidden">
        {open.isPending ? 'Opening… The session may wait for a slot.' : ''}
      </span>
      <span role="alert" className="text-bad empty:hidden">
        {open.error?.message}
      </span>
    </span>
  );
}

/** In the place of the form when the episode has ended. */
export function EndPanel({
  end,
  onCallAnyway,
  children,
}: {
  end: EpisodeEnd;
  onCallAnyway: (() => void) | null;
  children: React.ReactNode;
}) {
  const panel = useRef<HTMLElement>(null);
  // The form that had the focus is gone.
  useEffect(() => {
    if (document.activeElement === document.body) panel.current?.focus({ preventScroll: true });
  }, []);
  return (
    <section ref={panel} tabIndex={-1} aria-label="End of the episode" className="flex flex-col gap-3 p-3 outline-none">
      <h2 className={`text-[18px] leading-[24px] strong ${end.solved ? 'text-good' : ''}`}>{end.text}</h2>
      {children}
      {onCallAnyway && (
        <p className="text-ink-3">
          The environment may still answer calls.{' '}
          <button type="button" className="link" onClick={onCallAnyway}>
            Call a tool anyway
          </button>
        </p>
      )}
    </section>
  );
}
