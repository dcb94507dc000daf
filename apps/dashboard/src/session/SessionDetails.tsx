import { Link } from '@tanstack/react-router';
import { CALL_FAILURES, type SessionView } from '@palestra/protocol';
import type { ReactNode } from 'react';
import { formatCount, formatReward, UNKNOWN } from '../format/number.ts';
import { formatAbsolute, formatDuration, formatSpan } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { useNow } from '../frame/now.ts';
import { holderText, shortId } from '../sessions/names.ts';
import { RunLink } from '../sessions/SessionRows.tsx';
import { FailureClass, SessionState } from '../sessions/SessionState.tsx';
import { PlainText } from '../text/PlainText.tsx';

type Property = [name: string, value: ReactNode] | false;

function Section({ title, properties, children }: { title: string; properties?: Property[]; children?: ReactNode }) {
  return (
    <section className="border-b border-line px-4 py-3">
      <h2 className="mb-1 strong">{title}</h2>
      {properties && (
        <dl className="grid grid-cols-[96px_minmax(0,1fr)] gap-x-3 gap-y-[3px] text-[12px]">
          {properties
            .filter((property) => property !== false)
            .map(([name, value]) => (
              <div key={name} className="contents">
                <dt className="text-ink-3">{name}</dt>
                <dd className="min-w-0 [overflow-wrap:anywhere]">{value}</dd>
              </div>
            ))}
        </dl>
      )}
      {children}
    </section>
  );
}

/** When the session ends without a further request of its client. */
function TimeUntil({ iso }: { iso: string }) {
  const left = Date.parse(iso) - useNow();
  return (
    <time dateTime={iso} title={formatAbsolute(iso)}>
      {left <= 0 ? 'Now' : `In ${formatDuration(Math.max(1_000, left)).replace(/^(\d+)\.\d s/, '$1 s')}`}
    </time>
  );
}

function EnvironmentLink({ session }: { session: SessionView }) {
  const [owner, name] = session.environment?.split('/') ?? [];
  if (!owner || !name) return UNKNOWN;
  return (
    <>
      <Link to="/environments/$owner/$name" params={{ owner, name }} search={{}} className="link">
        {session.environment}
      </Link>
      {session.environment_version !== null && <span className="text-ink-3"> version {session.environment_version}</span>}
    </>
  );
}

/** Links to the other live sessions of the key. */
function HolderLink({ holder }: { holder: SessionView['holder'] }) {
  if (holder.key === null) return holderText(holder);
  return (
    <Link to="/sessions" search={{ key: holder.key.id }} className="link" title="Live sessions of this key">
      {holderText(holder)}
    </Link>
  );
}

function RolloutLink({ id, name }: { id: string; name: string | null }) {
  return (
    <Link to="/rollout/$id" params={{ id }} className="link">
      {name ?? shortId(id)}
    </Link>
  );
}

function Recording({ session: { recording, uploaded } }: { session: SessionView }) {
  if (recording === null) return uploaded && <Uploaded {...uploaded} />;
  return (
    <Section
      title="Recorded to"
      properties={[
        ['Run', <RunLink key="run" run={recording.run} />],
        ['Rollout', <RolloutLink key="rollout" id={recording.rollout_id} name={recording.name} />],
        recording.step !== null && ['Step', recording.step],
        recording.split !== null && ['Split', recording.split],
        recording.task_index !== null && ['Task', recording.task_index],
      ]}
    />
  );
}

function Uploaded({ run, rollout_id: id }: NonNullable<SessionView['uploaded']>) {
  return (
    <Section
      title="Uploaded to"
      properties={[
        ['Run', <RunLink key="run" run={run} />],
        ['Rollout', <RolloutLink key="rollout" id={id} name={null} />],
      ]}
    />
  );
}

function Calls({ session: { calls, total_reward: reward } }: { session: SessionView }) {
  const classes = CALL_FAILURES.filter((name) => calls[name] > 0);
  return (
    <Section
      title="Calls"
      properties={[
        ['Total', formatCount(calls.total)],
        calls.running > 0 && ['Running', formatCount(calls.running)],
        ['OK', formatCount(calls.ok)],
        ...classes.map((name): Property => [name, <FailureCount key={name} name={name} count={calls[name]} />]),
        [
          'Reward',
          <span key="reward" title="Sum over the scored calls. Failed calls are unscored, which is not 0.">
            {reward === null ? 'Unscored' : formatReward(reward)}
          </span>,
        ],
      ]}
    />
  );
}

function FailureCount({ name, count }: { name: (typeof CALL_FAILURES)[number]; count: number }) {
  return (
    <>
      {formatCount(count)} <FailureClass of={name} />
    </>
  );
}

function Times({ session }: { session: SessionView }) {
  const { queue } = session;
  const waited = queue?.queued_at && queue.admitted_at ? Date.parse(queue.admitted_at) - Date.parse(queue.queued_at) : null;
  return (
    <Section
      title="Times"
      properties={[
        ['Opened', <Age key="opened" iso={session.created_at} />],
        waited !== null && ['Waited', `${formatDuration(waited)} for a slot`],
        queue?.waiting === true && ['Waiting', <Age key="waiting" iso={queue.queued_at} />],
        ['Last request', <Age key="request" iso={session.last_request_at} />],
        ['Last seen', <Age key="seen" iso={session.last_seen_at} />],
        session.expires_at !== null && ['Ends', <TimeUntil key="ends" iso={session.expires_at} />],
        session.ended_at !== null && ['Ended', <Age key="ended" iso={session.ended_at} />],
        session.ended_at !== null && ['Lasted', formatDuration(Date.parse(session.ended_at) - Date.parse(session.created_at))],
        [
          'Timeouts',
          `${formatSpan(session.heartbeat_timeout_s * 1000)} without a ping, ${formatSpan(session.idle_timeout_s * 1000)} without a request`,
        ],
      ]}
    />
  );
}

/** The task of the session: an index in a split, or a task spec. */
function Task({ task }: { task: SessionView['task'] }) {
  if (task === null) return <Section title="Task" properties={[['Task', 'Not chosen yet']]} />;
  if (task['kind'] === 'none') return <Section title="Task" properties={[['Task', 'Chosen by the OpenEnv client at reset']]} />;
  const toolset: Property = task['toolset_name'] !== null && ['Toolset', String(task['toolset_name'])];
  if (task['kind'] === 'index')
    return <Section title="Task" properties={[['Split', String(task['split'])], ['Index', String(task['index'])], toolset]} />;
  return (
    <Section title="Task" properties={[toolset]}>
      <pre className="code-block max-h-[320px] overflow-auto whitespace-pre-wrap [overflow-wrap:anywhere]" tabIndex={0}>
        <PlainText text={JSON.stringify(task['spec'], null, 2).slice(0, 50_000)} />
      </pre>
    </Section>
  );
}

/** Everything about a session except its calls. */
export function SessionDetails({ session }: { session: SessionView }) {
  return (
    <aside aria-label="About this session" className="border-l border-line max-[1000px]:border-l-0 max-[1000px]:border-t">
      <Section
        title="Session"
        properties={[
          [
            'ID',
            <span key="id" className="mono select-all">
              {session.sid}
            </span>,
          ],
          ['State', <SessionState key="state" session={session} />],
          session.failure_class !== null &&
            session.failure_class !== 'ok' && ['Failure', <FailureClass key="failure" of={session.failure_class} />],
          ['Environment', <EnvironmentLink key="environment" session={session} />],
          session.variant !== null && ['Variant', session.variant],
          ['Holder', <HolderLink key="holder" holder={session.holder} />],
          session.owner_replica !== null && [
            'Process',
            <span key="process" className="mono" title={session.owner_replica}>
              {shortId(session.owner_replica)}
            </span>,
          ],
          session.forked_from !== null && [
            'Forked from',
            <span key="fork">
              <Link to="/sessions/$sid" params={{ sid: session.forked_from.sid }} className="link mono">
                {shortId(session.forked_from.sid)}
              </Link>{' '}
              after call {session.forked_from.at_call}
            </span>,
          ],
        ]}
      />
      <Calls session={session} />
      <Times session={session} />
      <Recording session={session} />
      <Task task={session.task} />
    </aside>
  );
}
