import type { RolloutMessageView } from '@palestra/protocol';
import { memo, type ReactNode } from 'react';
import { formatBytes, formatReward } from '../../format/number.ts';
import { formatDuration } from '../../format/time.ts';
import { PlainText } from '../../text/PlainText.tsx';
import { Body } from './Body.tsx';
import { CallCard } from './CallCard.tsx';
import { useRollout } from '../context.ts';
import type { RowProps } from './row-props.ts';
import { isNudge, type TranscriptItem, withoutRepeatedCalls } from '../transcript.ts';
import { MessageText } from '../../text/MessageText.tsx';

const ruleOf: Record<string, string> = {
  system_message: 'border-[var(--role-system)]',
  user_message: 'border-[var(--role-user)]',
  assistant_message: 'border-[var(--role-assistant)]',
  reasoning: 'border-[var(--role-assistant)]',
};
const roleOf: Record<string, string> = {
  system_message: 'System',
  user_message: 'User',
  assistant_message: 'Assistant',
  reasoning: 'Reasoning',
};

// In a narrow window: role and reward in one line, the content below over the whole width.
const narrowLayout = 'max-[760px]:grid-cols-[minmax(0,1fr)_auto] max-[760px]:gap-y-1 max-[760px]:pl-3';
const narrowLabel =
  'max-[760px]:flex max-[760px]:gap-2 max-[760px]:border-l-2 max-[760px]:border-r-0 max-[760px]:pl-2 max-[760px]:pr-0 max-[760px]:text-left';
const narrowContent = 'max-[760px]:order-last max-[760px]:col-span-2';

/** Role and link at the left, the content, the reward at the right. */
function RowLayout({ who, rule, row, children }: { who: ReactNode; rule: string; row: RowProps; children: ReactNode }) {
  const { notes } = useRollout();
  const { item, reward, durationMs } = row;
  const note = notes.get(item.anchor);
  return (
    <div className={`grid grid-cols-[76px_minmax(0,1fr)_48px] gap-x-3 py-2 pl-2 pr-3 ${narrowLayout}`}>
      <div className={`label border-r-2 pr-[10px] text-right leading-[18px] ${narrowLabel} ${rule}`}>
        {who}
        <a href={`#m-${item.anchor}`} className="block text-ink-3 hover:text-accent" aria-label={`Link to message ${item.anchor}`}>
          #{item.anchor}
        </a>
        {durationMs !== null && (
          <span className="block tabular-nums" title="Latency of the call, from the session ledger">
            {formatDuration(durationMs)}
          </span>
        )}
        {note && (
          <span className="block truncate text-accent" title={note}>
            ✎ {note}
          </span>
        )}
      </div>
      <div className={`min-w-0 ${narrowContent}`}>{children}</div>
      <div className="num leading-[22px]">
        {reward !== null && (
          <span className={reward > 0 ? 'strong text-good' : reward < 0 ? 'strong text-bad' : 'text-ink-3'}>
            <span className="sr-only">reward </span>
            {formatReward(reward)}
          </span>
        )}
      </div>
    </div>
  );
}

function CollapsibleText({
  label,
  preview,
  open,
  toggle,
  children,
}: {
  label: string;
  preview: string;
  open: boolean;
  toggle: () => void;
  children: ReactNode;
}) {
  return (
    <>
      <button
        type="button"
        aria-expanded={open}
        onClick={toggle}
        className="flex w-full min-w-0 items-baseline gap-2 text-left text-[13px] leading-[20px]"
      >
        <span className="link flex-none">{label}</span>
        {!open && (
          <span className="truncate text-ink-3">
            <PlainText text={preview.slice(0, 200).replace(/\s+/g, ' ')} />
          </span>
        )}
      </button>
      {open && <div className="mt-1">{children}</div>}
    </>
  );
}

const prose = 'reading';

function Message({ row, message, toggle }: { row: RowProps; message: RolloutMessageView; toggle: () => void }) {
  const text = message.content ?? message.summary ?? '';
  const open = row.open !== 'folded';
  const bytes = message.body_bytes ?? row.bytes;
  if (text === '')
    return (
      <span className="text-[13px] leading-[22px] text-ink-3">
        {message.contentReference ? `Stored by the provider as ${message.contentReference}` : 'Empty'}
      </span>
    );
  if (message.type === 'reasoning') {
    const label = open ? 'Hide reasoning' : `Show reasoning, ≈${Math.round(bytes / 4)} tokens`;
    return (
      <CollapsibleText label={label} preview={text} open={open} toggle={toggle}>
        <Body {...{ message, text, toggle }} kind="markdown" className="reading text-ink-2" open={row.open} />
      </CollapsibleText>
    );
  }
  if (message.type === 'system_message' && bytes > 240) {
    const label = open ? 'Hide system message' : `Show system message, ${formatBytes(bytes)}`;
    return (
      <CollapsibleText label={label} preview={text} open={open} toggle={toggle}>
        {message.body_bytes === undefined ? (
          <MessageText text={text} kind="markdown" className={prose} />
        ) : (
          <Body {...{ message, text, toggle }} kind="markdown" className={prose} open={row.open} />
        )}
      </CollapsibleText>
    );
  }
  const visible = message.type === 'assistant_message' ? withoutRepeatedCalls(text) : text;
  if (visible === '') return <span className="text-[13px] leading-[22px] text-ink-3">This message contains only the tool call below</span>;
  const tone = message.type === 'user_message' && (row.error !== 0 || isNudge(text)) ? 'text-ink-3' : '';
  return <Body message={message} text={visible} kind="markdown" className={`${prose} ${tone}`} open={row.open} toggle={toggle} />;
}

/** Shown while a text loads. */
const Placeholder = () => <div className="skeleton my-[6px] h-[10px] w-1/2" aria-hidden="true" />;

export const Row = memo(function Row(row: RowProps) {
  const { item, message, decisive } = row;
  const toggle = () => row.toggle(item.anchor);
  if (item.kind === 'gap') {
    const count = item.to - item.from + 1;
    return (
      <RowLayout who="Gap" rule="border-infrastructure" row={row}>
        <p className="text-[12px] leading-[22px] text-infrastructure">
          ✕ {count === 1 ? `1 message is missing (${item.from})` : `${count} messages missing (${item.from}–${item.to})`}: later messages
          were received.
        </p>
      </RowLayout>
    );
  }
  if (item.kind === 'call') return <CallRow row={row} item={item} toggle={toggle} />;
  return (
    <RowLayout who={roleOf[item.type] ?? item.type} rule={ruleOf[item.type] ?? 'border-line'} row={row}>
      <div className={decisive ? 'rounded-[4px] border border-good px-2 shadow-[0_0_0_1px_var(--good)]' : ''}>
        {message ? <Message row={row} message={message} toggle={toggle} /> : <Placeholder />}
      </div>
      {message?.isFinished && <span className="chip mt-1 text-good">● Finished</span>}
    </RowLayout>
  );
});

function CallRow({ row, item, toggle }: { row: RowProps; item: Extract<TranscriptItem, { kind: 'call' }>; toggle: () => void }) {
  const finished = Boolean(row.result?.isFinished || row.message?.isFinished);
  return (
    <RowLayout who={`Turn ${item.turn}`} rule={finished ? 'border-good' : 'border-[var(--role-tool)]'} row={row}>
      <CallCard row={row} item={item} finished={finished} toggle={toggle} />
    </RowLayout>
  );
}
