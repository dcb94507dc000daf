import type { SessionView } from '@palestra/protocol';
import { formatSpan } from '../format/time.ts';

export interface SessionProblem {
  title: string;
  /** What the problem means for the reader's data. */
  meaning: string;
}

/** What went wrong with a session; null if nothing did. The message of the environment is `failure.detail` of the session. */
export function sessionProblem(session: SessionView): SessionProblem | null {
  switch (session.state) {
    case 'failed':
      return {
        title: 'The environment failed to set up the episode',
        meaning:
          'No call can run. The session holds its slot until it is ended or times out. The session is unscored, which is not a reward of 0.',
      };
    case 'expired':
      return {
        title: `The session timed out: ${silenceText(session)}`,
        meaning:
          'Palestra ended the session and released its slot. The list below has all calls that ran. A call without a reward is unscored, which is not 0.',
      };
    case 'lost':
      return {
        title: 'The process or server of the session died or did not answer in time',
        meaning: 'The outcome of a call that was running is unknown. Palestra did not repeat it, and it is unscored, which is not 0.',
      };
    case 'diverged':
      return {
        title: 'A replayed call returned a different result',
        meaning:
          'The environment declares itself deterministic but is not. Palestra did not continue the session, because it would be a different episode.',
      };
    case 'restoring':
      return {
        title: 'The process of the session died, and a new process replays its calls',
        meaning: 'Palestra compares each result with the ledger. The client waits until the replay is complete.',
      };
    default:
      return null;
  }
}

/** Names the timeout that expired: the one of pings, or the one of requests. */
function silenceText({ ended_at: endedAt, last_seen_at: seen, heartbeat_timeout_s: heartbeat, idle_timeout_s: idle }: SessionView): string {
  const silentMs = endedAt === null ? 0 : Date.parse(endedAt) - Date.parse(seen);
  return silentMs >= heartbeat * 1000 ? `no ping for ${formatSpan(heartbeat * 1000)}` : `no request for ${formatSpan(idle * 1000)}`;
}
