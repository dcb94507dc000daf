import type { FailureClass, SessionRow } from '@palestra/protocol';
import { UNKNOWN } from '../format/number.ts';

type StateSource = Pick<SessionRow, 'state'> & { queue?: SessionRow['queue']; waiting?: boolean };
const marks: Record<SessionRow['state'], readonly [mark: string, className: string, title: string]> = {
  reserved: ['○', 'text-ink-3', 'The session has an id but no episode yet.'],
  starting: ['◐', 'text-policy', 'The environment sets up the episode now, or at the first request.'],
  ready: ['●', 'text-good', 'The episode is running.'],
  restoring: ['◐', 'text-policy', 'The process died. A new process replays the calls.'],
  finished: ['●', 'text-ink-2', 'A tool finished the episode. The session still holds its slot.'],
  closed: ['○', 'text-ink-3', 'The client or a member ended the session.'],
  failed: ['◆', 'text-environment', 'The environment failed to set up the episode.'],
  expired: ['✕', 'text-infrastructure', 'The client sent no ping or no request in time.'],
  lost: ['✕', 'text-infrastructure', 'The process or server of the session died.'],
  diverged: ['◆', 'text-environment', 'A replayed call returned a different result.'],
};

/** The state of a session as mark, colour and word. */
export function SessionState({ session }: { session: StateSource }) {
  const waiting = session.waiting ?? session.queue?.waiting ?? false;
  const [mark, className, title] = waiting ? ['◔', 'text-policy', 'The session waits for a slot.'] : marks[session.state];
  return (
    <span className={`whitespace-nowrap ${className}`} title={title}>
      <span aria-hidden="true">{mark}</span> {waiting ? 'waiting' : session.state}
    </span>
  );
}

const classes: Record<Exclude<FailureClass, 'ok'>, readonly [mark: string, className: string]> = {
  policy: ['▲', 'text-policy'],
  environment: ['◆', 'text-environment'],
  infrastructure: ['✕', 'text-infrastructure'],
};

/** The failure class: `▲` policy, `◆` environment, `✕` infrastructure. */
export function FailureClass({ of }: { of: FailureClass | null }) {
  if (of === null) return <span className="text-ink-3">{UNKNOWN}</span>;
  if (of === 'ok') return <span className="text-ink-3">ok</span>;
  const [mark, className] = classes[of];
  return (
    <span className={`whitespace-nowrap ${className}`}>
      <span aria-hidden="true">{mark}</span> {of}
    </span>
  );
}
