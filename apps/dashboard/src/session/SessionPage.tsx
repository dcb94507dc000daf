import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import type { SessionView } from '@palestra/protocol';
import { useEffect } from 'react';
import { errorInstead } from '../data/http.ts';
import { followSession, sessionQuery } from '../data/sessions.ts';
import { whileVisible } from '../data/live/stream.ts';
import { Age } from '../frame/Age.tsx';
import { CopyButton } from '../frame/CopyButton.tsx';
import { useKeys } from '../frame/keyboard.ts';
import { Crumb, Slash, TopBar } from '../frame/page.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { EndButton } from '../sessions/EndButton.tsx';
import { shortId } from '../sessions/names.ts';
import { SessionState } from '../sessions/SessionState.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { CallLedger } from './CallLedger.tsx';
import { SessionDetails } from './SessionDetails.tsx';
import { sessionProblem } from './problem.ts';

/** What went wrong with the session, and the detail that the failing part reported. */
function Problem({ session }: { session: SessionView }) {
  const problem = sessionProblem(session);
  if (problem === null) return null;
  const { failure, failure_class } = session;
  const borderClass = failure_class === 'environment' ? 'border-l-environment' : 'border-l-infrastructure';
  return (
    <section
      aria-label="Session problem"
      className={`border-b border-l-2 border-b-line bg-paper-1 px-4 py-3 ${session.live && failure === null ? 'border-l-policy' : borderClass}`}
    >
      <h2 className="strong">{problem.title}</h2>
      <p className="max-w-[84ch] text-ink-2">{problem.meaning}</p>
      {failure && (
        <div className="mt-2 flex items-center gap-3">
          <p className="mono min-w-0 max-h-[160px] overflow-auto whitespace-pre-wrap [overflow-wrap:anywhere]" tabIndex={0}>
            <PlainText text={failure.detail} />
          </p>
          <CopyButton text={`${failure.code}: ${failure.detail} (session ${session.sid})`} label={`Copy ${failure.code}`} />
        </div>
      )}
    </section>
  );
}

function Status({ session }: { session: SessionView }) {
  return (
    <span className="flex items-center gap-3 whitespace-nowrap text-ink-3">
      <SessionState session={session} />
      <span>
        {session.live ? 'Last seen ' : 'Ended '}
        <Age iso={session.live ? session.last_seen_at : session.ended_at} />
      </span>
    </span>
  );
}

/** Opens a live session in the playground: the same episode and the same ledger. */
function PlayLink({ session }: { session: SessionView }) {
  const [owner, name] = session.environment?.split('/') ?? [];
  if (!owner || !name || session.task === null) return null;
  return (
    <Link
      to="/environments/$owner/$name/play"
      params={{ owner, name }}
      search={{ sid: session.sid }}
      className="button"
      title="Continue the session in the playground"
    >
      Play
    </Link>
  );
}

export function SessionPage() {
  const { sid } = useParams({ from: '/sessions/$sid' });
  const session = useQuery(sessionQuery(sid));
  const client = useQueryClient();
  const navigate = useNavigate();
  const live = session.data?.live === true;
  const known = session.data !== undefined;
  // Ended sessions too: their last calls can still arrive. The stream ends by itself.
  useEffect(() => (known ? whileVisible(() => followSession(client, sid)) : undefined), [client, sid, known]);
  useKeys({ Escape: () => void navigate({ to: '/sessions', search: {} }) });
  const bar = (
    <TopBar
      title={`Session ${shortId(sid)}`}
      crumbs={
        <>
          <Link to="/sessions" search={{}} className="hover:text-ink-1">
            Sessions
          </Link>
          <Slash />
          <Crumb>
            <span className="font-mono">{shortId(sid)}</span>
          </Crumb>
        </>
      }
    >
      {session.data && <Status session={session.data} />}
      {live && session.data && <PlayLink session={session.data} />}
      {live && <EndButton sid={sid} button />}
    </TopBar>
  );
  const error = errorInstead(session);
  if (error || !session.data)
    return (
      <>
        {bar}
        {error ? <ErrorState error={error} retry={() => void session.refetch()} /> : <SkeletonRows />}
      </>
    );
  return (
    <>
      {bar}
      <div className="grid min-h-full grid-cols-[minmax(0,1fr)_320px] max-[1000px]:grid-cols-1">
        <div className="min-w-0">
          <Problem session={session.data} />
          <CallLedger key={sid} session={session.data} />
        </div>
        <SessionDetails session={session.data} />
      </div>
    </>
  );
}
