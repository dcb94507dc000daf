import type { FailureClass, SessionRow } from '@palestra/protocol';
import { UNKNOWN } from '../format/number.ts';

type Shown = Pick<SessionRow, 'state'> & { queue?: SessionRow['queue']; waiting?: boolean };
const marks: Record<SessionRow['state'], readonly [mark: string, className: string, title: string]> = {
  reserved: ['○', 'text-ink-3', 'Its id was given out; no episode was opened yet.'],
  starting: ['◐', 'text-policy', 'Its episode was opened: its setup runs, or nobody has asked for it yet.'],
  ready: ['●', 'text-good', 'The episode runs.'],
  restoring: ['◐', 'text-policy', 'Its process died: its calls are replayed in a fresh one.'],
  finished: ['●', 'text-ink-2', 'A tool said that the episode is over; it still holds its slot.'],
  closed: ['○', 'text-ink-3', 'It was ended by its client or on this page.'],
  failed: ['◆', 'text-environment', 'The environment failed to set it up.'],
  expired: ['✕', 'text-infrastructure', 'Its client went silent.'],
  lost: ['✕', 'text-infrastructure', 'What ran it died.'],
  diverged: ['◆', 'text-environment', 'Replayed in a fresh process, a call gave another result.'],
};

/** The state of a session by mark, colour and word. */
export function SessionState({ session }: { session: Shown }) {
  const waiting = session.waiting ?? session.queue?.waiting ?? false;
  const [mark, className, title] = waiting ? ['◔', 'text-policy', 'It waits for a slot.'] : marks[session.state];
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

/** Whose failure: `▲` the policy's, `◆` the environment's, `✕` the infrastructure's (look.md). */
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
