import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { MessageBlock, SessionCallView, SessionView } from '@palestra/protocol';
import { useEffect, useMemo, useState } from 'react';
import { errorInstead } from '../data/http.ts';
import { promptQuery, taskToolsQuery } from '../data/playground.ts';
import { discoveryQuery } from '../data/queries.ts';
import type { SessionLink } from '../data/session-link.ts';
import { callsQuery, refreshSession, sessionQuery, wholeCallQuery } from '../data/sessions.ts';
import { Crumb, Slash, TopBar } from '../frame/page.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { Blocks } from '../session/Blocks.tsx';
import { sessionProblem } from '../session/problem.ts';
import { EndButton } from '../sessions/EndButton.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { ActionLog } from './ActionLog.tsx';
import { actionToolOf, imagesIn, isReset, observationIn, resetsItself } from './action-environment.ts';
import { episodeEnd } from './episode-end.ts';
import { EndPanel, EpisodeControls } from './EpisodeControls.tsx';
import { Guide, GuideButton } from './Guide.tsx';
import { SaveButton } from './SaveDialog.tsx';
import { Observation } from './Observation.tsx';
import { Observer } from './Observer.tsx';
import { PlayStrip } from './PlayStrip.tsx';
import { Setup } from './Setup.tsx';
import { type ChosenTool, ToolPanel } from './ToolPanel.tsx';
import { useCalls, useKeepAlive, useSessionLink } from './useCalls.ts';

const from = '/environments/$owner/$name/play' as const;

/** Plays a task by hand. The address has the session, so that a reload continues it. */
export function PlaygroundPage() {
  const environment = useParams({ from });
  const { sid } = useSearch({ from });
  const bar = (actions?: React.ReactNode) => (
    <TopBar
      title={`Play ${environment.owner}/${environment.name}`}
      crumbs={
        <>
          <Link to="/environments" search={{}} className="hover:text-ink-1">
            Environments
          </Link>
          <Slash />
          <span className="contents max-[900px]:hidden">
            <span>{environment.owner}</span>
            <Slash />
          </span>
          <Link to="/environments/$owner/$name" params={environment} search={{}} className="truncate hover:text-ink-1">
            {environment.name}
          </Link>
          <Slash />
          <Crumb>Play</Crumb>
        </>
      }
    >
      {actions}
    </TopBar>
  );
  if (sid === undefined) return <ChooseTask environment={environment} bar={bar} />;
  return <PlaySession key={sid} environment={environment} sid={sid} bar={bar} />;
}

type Bar = (actions?: React.ReactNode) => React.ReactNode;
interface EnvironmentName {
  owner: string;
  name: string;
}

function ChooseTask({ environment, bar }: { environment: EnvironmentName; bar: Bar }) {
  const discovery = useQuery(discoveryQuery(environment.owner, environment.name));
  const search = useSearch({ from });
  return (
    <>
      {bar()}
      {discovery.error ? (
        <ErrorState error={discovery.error} retry={() => void discovery.refetch()} />
      ) : discovery.data ? (
        <div className="grid min-h-full grid-cols-[minmax(0,1fr)_minmax(0,480px)] max-[1000px]:grid-cols-1">
          <Setup environment={environment} variants={discovery.data.variants} />
          <aside aria-label="Guide" className="min-w-0 border-l border-line max-[1000px]:border-l-0 max-[1000px]:border-t">
            <Guide environment={environment} split={search.split ?? discovery.data.variants[0]?.splits[0]?.name} index={search.task ?? 0} />
          </aside>
        </div>
      ) : (
        <SkeletonRows />
      )}
    </>
  );
}

function PlaySession({ environment, sid, bar }: { environment: EnvironmentName; sid: string; bar: Bar }) {
  const session = useQuery(sessionQuery(sid));
  const client = useQueryClient();
  const navigate = useNavigate({ from });
  const link = useSessionLink(sid, session.data !== undefined);
  useKeepAlive(session.data, link);
  const anotherTask = (
    <button type="button" className="button" onClick={() => void navigate({ search: (before) => ({ ...before, sid: undefined }) })}>
      Choose another task
    </button>
  );
  const error = errorInstead(session);
  if (error || !session.data)
    return (
      <>
        {bar(anotherTask)}
        {error ? <ErrorState error={error} retry={() => void session.refetch()} /> : <SkeletonRows />}
      </>
    );
  return (
    <>
      {bar(
        <>
          <Link to="/sessions/$sid" params={{ sid }} className="button max-[1000px]:hidden">
            Session
          </Link>
          <GuideButton environment={environment} task={session.data.task} />
          <SaveButton session={session.data} onSaved={() => void refreshSession(client, sid)} />
          {session.data.live ? <EndButton sid={sid} button /> : anotherTask}
        </>,
      )}
      <Board environment={environment} session={session.data} link={link} />
    </>
  );
}

/** All recorded calls of the session, loaded page by page. */
function useRecordedCalls(sid: string) {
  const calls = useInfiniteQuery(callsQuery(sid));
  const { hasNextPage, isFetchingNextPage, isError, fetchNextPage } = calls;
  useEffect(() => {
    // After an error only the reader tries again.
    if (hasNextPage && !isFetchingNextPage && !isError) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, isError, fetchNextPage]);
  const rows = (calls.data?.pages ?? []).flatMap((page) => page.calls).filter(({ kind }) => kind === 'call');
  return { rows, error: calls.error, retry: () => void calls.refetch() };
}

/** The current observation of an action environment: the last result, or the prompt before the first action. */
function useObservation(sid: string, prompt: readonly MessageBlock[] | undefined, calls: readonly SessionCallView[], isAction: boolean) {
  const last = calls.findLast(({ state, ok }) => state === 'result' && ok !== false);
  // The list truncates long results, such as frames of a game.
  const whole = useQuery({
    ...wholeCallQuery(sid, last ?? { task_id: '', state: 'result' }),
    enabled: isAction && last?.truncated === true,
  });
  const blocks = last === undefined ? prompt : (whole.data ?? last).blocks;
  return useMemo(() => (isAction ? observationIn(blocks) : null), [isAction, blocks]);
}

function Board({ environment, session, link }: { environment: EnvironmentName; session: SessionView; link: SessionLink }) {
  const { sid, live } = session;
  const prompt = useQuery({ ...promptQuery(sid), enabled: live && !resetsItself(session) });
  const tools = useQuery({ ...taskToolsQuery(sid), enabled: live });
  const { rows, error, retry } = useRecordedCalls(sid);
  const calls = useCalls(link);
  const [chosen, setChosen] = useState<ChosenTool | null>(null);
  const choose = (tool: string, input: string | null = null) => setChosen((old) => ({ tool, input, count: (old?.count ?? 0) + 1 }));
  const isAction = tools.data ? actionToolOf(tools.data) !== null : rows.length > 0 && rows.every(({ tool }) => tool === 'step');
  const observation = useObservation(sid, prompt.data, rows, isAction);
  const last = rows.at(-1);
  const end = episodeEnd(session, rows);
  // Calls after the end of the episode are possible: the environment decides what they do.
  const [callsAfterEnd, setCallsAfterEnd] = useState(false);
  const controls = <EpisodeControls environment={environment} session={session} confirm={live && end === null && rows.length > 0} />;
  return (
    <div className="grid min-h-full grid-cols-[minmax(0,1fr)_400px] max-[1000px]:grid-cols-1">
      <div className="min-w-0">
        <PlayStrip session={session} calls={rows} link={link} end={end} controls={controls} />
        <Problem session={session} />
        <Prompt session={session} prompt={prompt.data} error={prompt.error} isAction={isAction} />
        {error ? (
          <ErrorState error={error} retry={retry} />
        ) : (
          <ActionLog
            session={session}
            calls={rows}
            replayed={calls.replayed}
            lastTaskId={calls.lastTaskId}
            environment={environment}
            isAction={isAction}
            onRepeat={({ tool, input }) => choose(tool, input)}
          />
        )}
        {rows.length === 0 && !error && <p className="p-4 text-ink-3">{live ? 'No calls yet.' : 'The session ended without a call.'}</p>}
      </div>
      <aside aria-label="Play" className="border-l border-line max-[1000px]:border-l-0 max-[1000px]:border-t">
        <div className="sticky top-0 flex h-[calc(100dvh-44px)] flex-col max-[1000px]:static max-[1000px]:h-auto">
          <div className="min-h-0 flex-1 overflow-y-auto max-[1000px]:overflow-visible">
            <p role="alert" className="text-bad empty:hidden px-3 pt-3">
              {calls.connectionError}
            </p>
            {end && !callsAfterEnd ? (
              <EndPanel end={end} onCallAnyway={live && session.state !== 'failed' ? () => setCallsAfterEnd(true) : null}>
                {live ? null : <p className="text-ink-3">The session has ended. Its calls stay in the ledger.</p>}
              </EndPanel>
            ) : tools.data ? (
              <ToolPanel
                tools={tools.data}
                observation={observation}
                chosen={chosen}
                choose={choose}
                closedReason={live ? null : 'The session has ended.'}
                busy={calls.busy}
                last={last === undefined || last.truncated || isReset(session, last) ? null : { tool: last.tool, input: last.input }}
                onCall={calls.call}
              />
            ) : tools.error ? (
              <ErrorState error={tools.error} retry={() => void tools.refetch()} />
            ) : (
              <SkeletonRows count={6} />
            )}
          </div>
          <Observer environment={environment} session={session} calls={rows} tools={tools.data} task={taskName(session)} />
        </div>
      </aside>
    </div>
  );
}

function Problem({ session }: { session: SessionView }) {
  const problem = sessionProblem(session);
  if (!problem) return null;
  return (
    <section aria-label="Session problem" className="border-b border-l-2 border-b-line border-l-infrastructure bg-paper-1 px-4 py-3">
      <h2 className="strong">{problem.title}</h2>
      <p className="max-w-[84ch] text-ink-2">{problem.meaning}</p>
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
  error: Error | null;
  isAction: boolean;
}

/** The prompt: text and images, or the first observation of an action environment. */
function Prompt({ session, prompt, error, isAction }: PromptProps) {
  const first = useMemo(() => (isAction ? observationIn(prompt) : null), [isAction, prompt]);
  return (
    <section aria-label="Prompt" className="border-b border-l-2 border-b-line border-l-[var(--role-user)] px-4 py-3">
      <h2 className="label mb-1">
        {first ? 'First observation' : 'Prompt'} · {taskName(session)}
      </h2>
      {first ? (
        <Observation value={first} images={imagesIn(prompt)} />
      ) : prompt ? (
        <Blocks blocks={prompt} prose />
      ) : error && session.state !== 'failed' ? (
        <p className="text-bad">{error.message}</p>
      ) : (
        <p className="text-ink-3">{noPromptText(session)}</p>
      )}
    </section>
  );
}

function noPromptText(session: SessionView): string {
  if (resetsItself(session)) return 'The OpenEnv client resets the episode. The result of the reset is the first observation.';
  if (!session.live) return 'The prompt of an ended session is not stored.';
  return session.state === 'failed' ? 'The setup failed, so there is no prompt.' : 'The environment is being set up…';
}

function taskName({ task }: SessionView): string {
  if (task === null) return 'No task';
  if (task['kind'] === 'none') return 'Chosen by the client at reset';
  return task['kind'] === 'index' ? `${String(task['split'])} ${String(task['index'])}` : 'Custom task';
}
