import type { RolloutHeader, RolloutMessageView, RolloutOutline } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';
import type { FromList } from '../data/list-order.ts';
import { previewQuery } from '../data/explorer.ts';
import { formatCount, formatReward, plural, UNKNOWN } from '../format/number.ts';
import { PartialSum } from '../frame/PartialSum.tsx';
import { taskLabel } from '../format/task.ts';
import { formatDuration } from '../format/time.ts';
import { WithProvenance } from '../frame/Provenance.tsx';
import { RewardDot } from '../frame/Reward.tsx';
import { Stop } from '../frame/Stop.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { flagName } from './table/marks.tsx';
import type { Solved } from './table/solved.ts';

const SETTLE_MS = 90;
const PREVIEW_CHARACTERS = 420;

/** The id after a pause, so that moving through a list does not load every row. */
function useSettled(id: string | null): string | null {
  const [settled, setSettled] = useState(id);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(id), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [id]);
  return settled;
}

/** The selected rollout beside the list: details, tool calls in order, first and last messages. */
export function PreviewPanel({ id, from, solved, onClose }: { id: string | null; from: FromList; solved: Solved; onClose: () => void }) {
  const settled = useSettled(id);
  const { data, error, isPlaceholderData } = useQuery({ ...previewQuery(settled ?? ''), enabled: settled !== null });
  return (
    <aside
      aria-label="Preview of the rollout"
      className="flex h-full w-[320px] flex-none flex-col border-l border-line bg-paper-1 max-[639px]:w-full min-[1700px]:w-[480px]"
    >
      <div className="flex h-[34px] flex-none items-center gap-2 border-b border-line px-3">
        <h2 className="min-w-0 flex-1 truncate strong">{data && id ? title(data.header) : 'Preview'}</h2>
        {id && (
          <Link to="/rollout/$id" params={{ id }} search={from} className="label link flex-none" aria-keyshortcuts="Enter">
            Open <kbd>Enter</kbd>
          </Link>
        )}
        <button
          type="button"
          className="grid size-[22px] place-items-center rounded-[3px] text-ink-3 hover:bg-paper-2"
          aria-label="Hide the preview"
          onClick={onClose}
        >
          ✕
        </button>
      </div>
      {!id || !settled ? (
        <p className="p-3 text-ink-3">Select a row with a click or the keys ↑ and ↓.</p>
      ) : error ? (
        <p className="p-3 text-ink-3">{error.message}</p>
      ) : data ? (
        <div
          className={`min-h-0 flex-1 overflow-y-auto p-3 ${isPlaceholderData ? 'opacity-60' : ''}`}
          tabIndex={0}
          role="region"
          aria-label="Content of the rollout"
        >
          <Details header={data.header} solved={solved} />
          <Calls outline={data.outline} />
          <Messages head={data.head} tail={data.tail} total={data.outline.total} id={settled} from={from} />
        </div>
      ) : (
        <p className="p-3 text-ink-3">Loading…</p>
      )}
    </aside>
  );
}

const title = (header: RolloutHeader): string =>
  [taskLabel(header), header.step === null ? null : `step ${header.step}`, header.sample === null ? null : `sample ${header.sample}`]
    .filter((part) => part !== null)
    .join(' · ');

function Detail({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt className="label leading-[18px]">{label}</dt>
      <dd className="min-w-0 truncate">{children}</dd>
    </>
  );
}

function Details({ header, solved }: { header: RolloutHeader; solved: Solved }) {
  const { provenance, reward } = header;
  const best = header.neighbours.best_sample;
  return (
    <dl className="grid grid-cols-[76px_minmax(0,1fr)] gap-x-2 gap-y-[2px]">
      <Detail label="Reward">
        <span className="inline-flex items-center gap-2 tabular-nums strong">
          <WithProvenance provenance={reward === null ? 'unknown' : provenance['reward']} rule={header.rules['reward']}>
            {formatReward(reward)}
          </WithProvenance>
          <RewardDot reward={reward} solved={(value) => solved(header, value)} />
          {reward === null && <span className="label">{header.partial_reward === null ? 'unscored' : 'interrupted'}</span>}
          <PartialSum rollout={header} />
          {best && <span className="label">best of its group {formatReward(best.reward)}</span>}
        </span>
      </Detail>
      <Detail label="Stop reason">
        <WithProvenance provenance={provenance['stop']} rule={header.rules['stop']}>
          <Stop stop={header.stop} />
        </WithProvenance>
      </Detail>
      <Detail label="Turns">
        {formatCount(header.turns)}{' '}
        <span className="text-ink-3">
          · {plural(header.num_tool_calls, 'call')} · {plural(header.num_messages, 'message')}
        </span>
      </Detail>
      <Detail label="Environment">
        <span title={header.environment ?? undefined}>{header.environment ?? UNKNOWN}</span>
      </Detail>
      {header.latency_ms !== null && <Detail label="Latency">{formatDuration(header.latency_ms)}</Detail>}
      {header.flags.length > 0 && <Detail label="Flags">{header.flags.map(flagName).join(' · ')}</Detail>}
    </dl>
  );
}

const CALLS = 60;

/** The names of tool calls, with marks for failures and rewards. */
function Calls({ outline }: { outline: RolloutOutline }) {
  const callType = outline.types.indexOf('tool_call');
  const calls = outline.type.flatMap((type, at) => (type === callType ? [at] : []));
  if (calls.length === 0) return <p className="mt-3 text-ink-3">No tool calls.</p>;
  return (
    <ol className="mt-3 flex flex-wrap gap-1" aria-label="Tool calls in order">
      {calls.slice(0, CALLS).map((at) => {
        const result = outline.pair[at];
        const name = outline.names[outline.name[at] ?? -1] ?? 'tool';
        const failed = result !== null && result !== undefined && (outline.error[result]! & 1) !== 0;
        const reward = (result === null || result === undefined ? null : outline.reward[result]) ?? outline.reward[at] ?? null;
        return (
          <li
            key={at}
            title={`#${outline.index[at]} ${name}${failed ? ', failed' : ''}${reward === null ? '' : `, reward ${formatReward(reward)}`}`}
            className={`mono inline-flex h-[20px] items-center gap-1 rounded-[3px] border px-1 text-[11px] ${failed ? 'border-bad text-bad' : 'border-line text-ink-2'}`}
          >
            {failed && <span aria-hidden="true">✕</span>}
            {name.length > 9 ? `${name.slice(0, 8)}…` : name}
            {reward !== null && reward !== 0 && <span className={reward > 0 ? 'text-good' : 'text-bad'}>{formatReward(reward)}</span>}
          </li>
        );
      })}
      {calls.length > CALLS && <li className="label self-center">And {formatCount(calls.length - CALLS)} more</li>}
    </ol>
  );
}

const roles: Record<string, readonly [name: string, rule: string]> = {
  system_message: ['System', 'border-[var(--role-system)]'],
  user_message: ['User', 'border-[var(--role-user)]'],
  assistant_message: ['Assistant', 'border-[var(--role-assistant)]'],
  reasoning: ['Reasoning', 'border-[var(--role-assistant)]'],
  tool_call: ['Call', 'border-[var(--role-tool)]'],
  tool_result: ['Result', 'border-[var(--role-tool)]'],
};

function Message({ message, id, from }: { message: RolloutMessageView; id: string; from: FromList }) {
  const [name, rule] = roles[message.type] ?? [message.type, 'border-line'];
  const text = message.content ?? message.summary ?? '';
  return (
    <li className={`border-l-2 pl-2 ${rule}`}>
      <p className="label flex gap-2">
        <span>{message.name ? `${name} ${message.name}` : name}</span>
        <Link to="/rollout/$id" params={{ id }} search={from} hash={`m-${message.index}`} className="hover:text-accent">
          #{message.index}
        </Link>
        {message.reward !== null && (
          <span className={`ml-auto tabular-nums ${message.reward > 0 ? 'text-good' : message.reward < 0 ? 'text-bad' : ''}`}>
            {formatReward(message.reward)}
          </span>
        )}
      </p>
      <p className="line-clamp-5 whitespace-pre-line text-ink-2 [overflow-wrap:anywhere]">
        <PlainText text={text.length > PREVIEW_CHARACTERS ? `${text.slice(0, PREVIEW_CHARACTERS)}…` : text || 'Empty'} />
      </p>
    </li>
  );
}

function Messages({
  head,
  tail,
  total,
  id,
  from,
}: {
  head: RolloutMessageView[];
  tail: RolloutMessageView[];
  total: number;
  id: string;
  from: FromList;
}) {
  const between = total - head.length - tail.length;
  return (
    <ol className="mt-3 flex flex-col gap-3">
      {head.map((message) => (
        <Message key={message.eventId} message={message} id={id} from={from} />
      ))}
      {between > 0 && <li className="label">{plural(between, 'message')} in between</li>}
      {tail.map((message) => (
        <Message key={message.eventId} message={message} id={id} from={from} />
      ))}
    </ol>
  );
}
