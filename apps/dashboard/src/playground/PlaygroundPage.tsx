import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { MessageBlock, SessionCallView, SessionView } from '@palestra/protocol';
import { useEffect, useMemo, useState } from 'react';
import { promptQuery, taskToolsQuery } from '../data/playground.ts';
import { discoveryQuery } from '../data/queries.ts';
import type { SessionLink } from '../data/session-link.ts';
import { callsQuery, refreshSession, sessionQuery, wholeCallQuery } from '../data/sessions.ts';
import { Crumb, Slash, TopBar } from '../frame/page.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { Blocks } from '../session/Blocks.tsx';
import { endingOf } from '../session/ending.ts';
import { EndButton } from '../sessions/EndButton.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { ActionLog } from './ActionLog.tsx';
import { actionToolOf, isReset, observationIn, resetsItself } from './episode.ts';
import { Guide, GuideButton } from './Guide.tsx';
import { KeepButton } from './KeepDialog.tsx';
import { Observation } from './Observation.tsx';
import { Observer } from './Observer.tsx';
import { PlayStrip } from './PlayStrip.tsx';
import { Setup } from './Setup.tsx';
import { type Chosen, ToolPanel } from './ToolPanel.tsx';
import { useKeepAlive, usePlay, useSessionLink } from './usePlay.ts';

const from = '/environments/$owner/$name/play' as const;

/** A task played by hand; the session is in the address, so that a reload goes on with it. */
export function PlaygroundPage() {
  const place = useParams({ from });
  const { sid } = useSearch({ from });
  const bar = (actions?: React.ReactNode) => (
    <TopBar
      title={`Play ${place.owner}/${place.name}`}
      crumbs={
        <>
          <Link to="/environments" search={{}} className="hover:text-ink-1">
            Environments
          </Link>
          <Slash />
          <span className="contents max-[900px]:hidden">
            <span>{place.owner}</span>
            <Slash />
          </span>
          <Link to="/environments/$owner/$name" params={place} search={{}} className="truncate hover:text-ink-1">
            {place.name}
          </Link>
          <Slash />
          <Crumb>Play</Crumb>
        </>
      }
    >
      {actions}
    </TopBar>
  );
  if (sid === undefined) return <Choosing place={place} bar={bar} />;
  return <Playing key={sid} place={place} sid={sid} bar={bar} />;
}

type Bar = (actions?: React.ReactNode) => React.ReactNode;
interface Place {
  owner: string;
  name: string;
}

function Choosing({ place, bar }: { place: Place; bar: Bar }) {
  const discovery = useQuery(discoveryQuery(place.owner, place.name));
  const search = useSearch({ from });
  return (
    <>
      {bar()}
      {discovery.error ? (
        <ErrorState error={discovery.error} retry={() => void discovery.refetch()} />
      ) : discovery.data ? (
        <div className="grid min-h-full grid-cols-[minmax(0,1fr)_minmax(0,480px)] max-[1000px]:grid-cols-1">
          <Setup place={place} variants={discovery.data.variants} />
          <aside aria-label="Guide" className="min-w-0 border-l border-line max-[1000px]:border-l-0 max-[1000px]:border-t">
            <Guide place={place} split={search.split ?? discovery.data.variants[0]?.splits[0]?.name} index={search.task ?? 0} />
          </aside>
        </div>
      ) : (
        <SkeletonRows />
      )}
    </>
  );
}

function Playing({ place, sid, bar }: { place: Place; sid: string; bar: Bar }) {
  const session = useQuery(sessionQuery(sid));
  const client = useQueryClient();
  const navigate = useNavigate({ from });
  const link = useSessionLink(sid, session.data !== undefined);
  useKeepAlive(session.data, link);
  const anew = (
    <button type="button" className="button" onClick={() => void navigate({ search: (before) => ({ ...before, sid: undefined }) })}>
      Another task
    </button>
  );
  if (session.error || !session.data)
    return (
      <>
        {bar(anew)}
        {session.error ? <ErrorState error={session.error} retry={() => void session.refetch()} /> : <SkeletonRows />}
      </>
    );
  return (
    <>
      {bar(
        <>
          <Link to="/sessions/$sid" params={{ sid }} className="button max-[1000px]:hidden">
            Session
          </Link>
          <GuideButton place={place} task={session.data.task} />
          <KeepButton session={session.data} onKept={() => void refreshSession(client, sid)} />
          {session.data.live ? <EndButton sid={sid} button /> : anew}
        </>,
      )}
      <Board place={place} session={session.data} link={link} />
    </>
  );
}

/** All calls, page after page: an episode is read from its beginning. */
function useCalls(sid: string) {
  const calls = useInfiniteQuery(callsQuery(sid));
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = calls;
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  return { rows: (calls.data?.pages ?? []).flatMap((page) => page.calls).filter(({ kind }) => kind === 'call'), error: calls.error };
}

function closedBecause(session: SessionView): string | null {
  if (!session.live) return 'The session has ended.';
  // After the end the environment itself refuses, or goes on: that is part of what is played.
  return session.state === 'failed' ? 'The environment failed to set it up: no call can run.' : null;
}

/** What the agent of an action environment sees now: after the last action, else at the beginning. */
function useObservation(sid: string, prompt: readonly MessageBlock[] | undefined, calls: readonly SessionCallView[], action: boolean) {
  const last = calls.findLast(({ state, ok }) => state === 'result' && ok !== false);
  // A frame of a game is longer than what lists hold.
  const whole = useQuery({ ...wholeCallQuery(sid, last ?? { task_id: '', state: 'result' }), enabled: action && last?.truncated === true });
  const blocks = last === undefined ? prompt : (whole.data ?? last).blocks;
  return useMemo(() => (action ? observationIn(blocks) : null), [action, blocks]);
}

function Board({ place, session, link }: { place: Place; session: SessionView; link: SessionLink }) {
  const { sid, live } = session;
  const prompt = useQuery({ ...promptQuery(sid), enabled: live && !resetsItself(session) });
  const tools = useQuery({ ...taskToolsQuery(sid), enabled: live });
  const { rows, error } = useCalls(sid);
  const play = usePlay(link);
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const choose = (tool: string, input: string | null = null) => setChosen((before) => ({ tool, input, take: (before?.take ?? 0) + 1 }));
  const action = tools.data ? actionToolOf(tools.data) !== null : rows.length > 0 && rows.every(({ tool }) => tool === 'step');
  const observation = useObservation(sid, prompt.data, rows, action);
  const before = rows.at(-1);
  return (
    <div className="grid min-h-full grid-cols-[minmax(0,1fr)_400px] max-[1000px]:grid-cols-1">
      <div className="min-w-0">
        <PlayStrip session={session} calls={rows} link={link} />
        <WhatWentWrong session={session} />
        <Prompt session={session} prompt={prompt.data} problem={prompt.error} action={action} />
        {error ? (
          <ErrorState error={error} />
        ) : (
          <ActionLog
            session={session}
            calls={rows}
            replayed={play.replayed}
            mine={play.mine}
            place={place}
            action={action}
            onRepeat={({ tool, input }) => choose(tool, input)}
          />
        )}
        {rows.length === 0 && !error && <p className="p-4 text-ink-3">{live ? 'Nothing was called yet.' : 'It ended without a call.'}</p>}
      </div>
      <aside aria-label="Play" className="border-l border-line max-[1000px]:border-l-0 max-[1000px]:border-t">
        <div className="sticky top-0 flex h-[calc(100dvh-44px)] flex-col max-[1000px]:static max-[1000px]:h-auto">
          <div className="min-h-0 flex-1 overflow-y-auto max-[1000px]:overflow-visible">
            <p role="alert" className="text-bad empty:hidden px-3 pt-3">
              {play.problem}
            </p>
            {tools.data ? (
              <ToolPanel
                tools={tools.data}
                observation={observation}
                chosen={chosen}
                choose={choose}
                closed={closedBecause(session)}
                busy={play.busy}
                last={
                  before === undefined || before.truncated || isReset(session, before) ? null : { tool: before.tool, input: before.input }
                }
                onCall={play.call}
              />
            ) : tools.error ? (
              <ErrorState error={tools.error} retry={() => void tools.refetch()} />
            ) : live ? (
              <SkeletonRows count={6} />
            ) : (
              <p className="p-3 text-ink-3">The session has ended: nothing more can be called. Its calls stay on record.</p>
            )}
          </div>
          <Observer place={place} session={session} calls={rows} tools={tools.data} task={taskName(session)} />
        </div>
      </aside>
    </div>
  );
}

function WhatWentWrong({ session }: { session: SessionView }) {
  const ending = endingOf(session);
  if (!ending) return null;
  return (
    <section aria-label="What went wrong" className="border-b border-l-2 border-b-line border-l-infrastructure bg-paper-1 px-4 py-3">
      <h2 className="strong">{ending.title}</h2>
      <p className="max-w-[84ch] text-ink-2">{ending.meaning}</p>
      {session.failure && (
        <p className="mono mt-1 whitespace-pre-wrap [overflow-wrap:anywhere]">
          <PlainText text={session.failure.detail} />
        </p>
      )}
    </section>
  );
}

interface PromptProps {
  session: SessionView;
  prompt: readonly MessageBlock[] | undefined;
  problem: Error | null;
  action: boolean;
}

/** What the policy reads first: text and images, or the first observation of an action environment. */
function Prompt({ session, prompt, problem, action }: PromptProps) {
  const first = useMemo(() => (action ? observationIn(prompt) : null), [action, prompt]);
  return (
    <section aria-label="Prompt" className="border-b border-l-2 border-b-line border-l-[var(--role-user)] px-4 py-3">
      <h2 className="label mb-1">
        {first ? 'first observation' : 'prompt'} · {taskName(session)}
      </h2>
      {first ? (
        <Observation value={first} />
      ) : prompt ? (
        <Blocks blocks={prompt} prose />
      ) : problem && session.state !== 'failed' ? (
        <p className="text-bad">{problem.message}</p>
      ) : (
        <p className="text-ink-3">{whyNoPrompt(session)}</p>
      )}
    </section>
  );
}

function whyNoPrompt(session: SessionView): string {
  if (resetsItself(session))
    return 'Its client, which speaks OpenEnv, resets the episode by itself: what it sees first is the result of that.';
  if (!session.live) return 'Prompts are not kept once a session has ended.';
  return session.state === 'failed' ? 'There is none.' : 'The environment is being set up…';
}

function taskName({ task }: SessionView): string {
  if (task === null) return 'no task';
  if (task['kind'] === 'none') return 'as its client resets it';
  return task['kind'] === 'index' ? `${String(task['split'])} ${String(task['index'])}` : 'a task written by hand';
}
