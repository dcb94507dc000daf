import type { RolloutHeader, RolloutOutline } from '@palestra/protocol';
import { FailureClass } from '../failures/FailureClass.tsx';
import { formatReward } from '../format/number.ts';
import { PlainText } from '../text/PlainText.tsx';
import { nameAt, rewardOf, rowOfMessage, type TranscriptItem } from './transcript.ts';

interface CauseProps {
  header: RolloutHeader;
  outline: RolloutOutline;
  items: readonly TranscriptItem[];
  /** The row with the largest reward; -1 without one. */
  decisive: number;
  solved: (reward: number) => boolean;
  go: (row: number) => void;
}

const MAX_CHARACTERS = 300;

/** What a stop reason means, for a rollout without an error that explains it. */
const STOPS: Record<string, string> = {
  max_turns: 'the rollout reached its limit of turns',
  max_tokens: 'the rollout reached its limit of tokens',
  context_length: 'the context was full',
  no_tool_call: 'the last message did not call a tool',
  parse_error: 'a call could not be parsed',
  env_error: 'the environment failed',
  infra_error: 'the infrastructure failed',
  timeout: 'a call took too long',
  aborted: 'the trainer aborted the rollout',
  cancelled: 'the rollout was cancelled',
};

function failureText({ kind, tool, text, stop }: NonNullable<RolloutHeader['failure']>): string {
  if (kind === 'stop' || !text) {
    const ended = STOPS[stop] ?? stop;
    return kind === 'stop' && tool !== null ? `${tool} got no result: ${ended}` : ended;
  }
  const said = text.slice(0, MAX_CHARACTERS);
  if (kind === 'call') return `${tool ?? 'a call'} failed: ${said}`;
  return kind === 'parse' ? `a call could not be parsed: ${said}` : said;
}

/** In one line, which wraps on a phone: what went wrong, and what decided the reward. Both lead to the message. */
export function CauseLine({ header, outline, items, decisive, solved, go }: CauseProps) {
  const { failure, reward } = header;
  if (header.stop === null && failure === null && decisive < 0) return null;
  const failed = failure === null || failure.index === null ? -1 : rowOfMessage(outline, items, failure.index);
  const item = items[decisive];
  const largest = item && rewardOf(outline, item);
  return (
    <p
      className="flex min-h-[28px] flex-none flex-wrap items-center gap-x-5 border-b border-line px-4 py-[3px] text-[12px]"
      aria-label="Cause"
    >
      {failure !== null ? (
        <Place row={failed} go={go}>
          <FailureClass of={failure.class} /> <PlainText text={failureText(failure)} />
        </Place>
      ) : (
        <span className="text-ink-2">Nothing failed{header.stop === 'finished' ? '; the episode finished.' : '.'}</span>
      )}
      {item && largest ? (
        <Place row={decisive} go={go}>
          <span className={largest > 0 ? 'text-good' : 'text-bad'}>
            {reward !== null && solved(reward) ? 'Solved: ' : 'Largest reward: '}
            {formatReward(largest, { signed: true })}
          </span>{' '}
          by <PlainText text={item.kind === 'call' ? (nameAt(outline, item.call) ?? 'a result') : 'a message'} />
        </Place>
      ) : (
        <span className="text-ink-3">{reward === null ? 'No reward' : 'No message earned a reward.'}</span>
      )}
    </p>
  );
}

function Place({ row, go, children }: { row: number; go: (row: number) => void; children: React.ReactNode }) {
  const text = <span className="line-clamp-2 [overflow-wrap:anywhere] max-[760px]:line-clamp-none">{children}</span>;
  if (row < 0) return <span className="min-w-0 max-w-full">{text}</span>;
  return (
    <button type="button" className="min-w-0 max-w-full text-left hover:underline" onClick={() => go(row)} title="Show the message">
      {text}
    </button>
  );
}
