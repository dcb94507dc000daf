import type { SessionView } from '@palestra/protocol';
import { formatSpan } from '../format/time.ts';

export interface Ending {
  title: string;
  /** What it means for the reader's data. */
  meaning: string;
}

/** What went wrong with a session, said in words; null when nothing did. The environment's own words are its `failure.detail`. */
export function endingOf(session: SessionView): Ending | null {
  switch (session.state) {
    case 'failed':
      return {
        title: 'The environment failed to set it up',
        meaning: 'No call can run. It holds its slot until it is ended or its client goes silent. Nothing of it is scored.',
      };
    case 'expired':
      return {
        title: `Its client went silent for ${formatSpan(silenceOf(session))}`,
        meaning: 'It was ended and its slot given back. The calls below are all that ran; a missing reward is unscored, never 0.',
      };
    case 'lost':
      return {
        title: 'What ran it died, or gave no answer in time',
        meaning: 'A call that ran at that moment may or may not have run to its end. It was not run again, and it is unscored, never 0.',
      };
    case 'diverged':
      return {
        title: 'Replayed in a fresh process, a call gave another result than before',
        meaning: 'Its environment declares itself deterministic but is not. The session was not continued on a different episode.',
      };
    case 'restoring':
      return {
        title: 'Its process died; its calls are being replayed in a fresh one',
        meaning: 'Each result is checked against the ledger. Its client waits meanwhile and notices nothing but time.',
      };
    default:
      return null;
  }
}

/** Which of the two clocks ran out: that of pings, or that of requests. */
function silenceOf({ ended_at: endedAt, last_seen_at: seen, heartbeat_timeout_s: heartbeat, idle_timeout_s: idle }: SessionView): number {
  const silent = endedAt === null ? 0 : Date.parse(endedAt) - Date.parse(seen);
  return silent >= heartbeat * 1000 ? heartbeat * 1000 : idle * 1000;
}
