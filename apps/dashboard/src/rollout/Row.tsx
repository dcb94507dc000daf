import type { RolloutMessageView } from '@palestra/protocol';
import { memo, type ReactNode } from 'react';
import { formatBytes, formatReward } from '../format/number.ts';
import { Markdown } from '../text/Markdown.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { Gated } from './Gated.tsx';
import { argumentsOf, isFinished, isNudge, rewardOf, type TranscriptItem, withoutRepeatedCalls } from './transcript.ts';

const ruleOf: Record<RolloutMessageView['type'], string> = {
  system_message: 'border-[var(--role-system)]',
  user_message: 'border-[var(--role-user)]',
  assistant_message: 'border-[var(--role-assistant)]',
  reasoning: 'border-[var(--role-assistant)]',
  tool_call: 'border-[var(--role-tool)]',
  tool_result: 'border-[var(--role-tool)]',
};
const roleOf: Record<string, string> = {
  system_message: 'system',
  user_message: 'user',
  assistant_message: 'assistant',
  reasoning: 'reasoning',
};

interface RowProps {
  item: TranscriptItem;
  /** The row that decided the reward: the only strong mark of the page. */
  decisive: boolean;
  open: boolean;
  toggle: (anchor: number) => void;
}

function Rewards({ item }: { item: TranscriptItem }) {
  const reward = rewardOf(item);
  if (reward === null) return null;
  return (
    <span className={`tabular-nums ${reward > 0 ? 'text-good strong' : reward < 0 ? 'text-bad strong' : 'text-ink-3'}`}>
      <span className="sr-only">reward </span>
      {formatReward(reward, { signed: true })}
    </span>
  );
}

function Shell({ who, rule, item, children }: { who: ReactNode; rule: string; item: TranscriptItem; children: ReactNode }) {
  return (
    <div className="grid grid-cols-[76px_minmax(0,1fr)_44px] gap-x-[14px] py-2 pl-2 pr-4">
      <div className={`label border-r-2 pr-[10px] text-right leading-[18px] ${rule}`}>
        {who}
        <a href={`#m-${item.anchor}`} className="block text-ink-3 hover:text-accent" aria-label={`Link to message ${item.anchor}`}>
          #{item.anchor}
        </a>
      </div>
      <div className="min-w-0">{children}</div>
      <div className="num leading-[22px]">
        <Rewards item={item} />
      </div>
    </div>
  );
}

function Fold({
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

function Message({ message, open, toggle }: { message: RolloutMessageView; open: boolean; toggle: () => void }) {
  const text = message.content ?? message.summary ?? '';
  if (text === '')
    return (
      <span className="text-[13px] leading-[22px] text-ink-3">
        {message.contentReference ? `kept by the provider as ${message.contentReference}` : 'empty'}
      </span>
    );
  if (message.type === 'reasoning')
    return (
      <Fold
        label={open ? 'Fold the reasoning' : `Reasoning ≈${Math.round(text.length / 4)} tokens`}
        preview={text}
        open={open}
        toggle={toggle}
      >
        <Markdown source={text.slice(0, 200_000)} className="max-w-[84ch] text-[13px] leading-[20px] text-ink-2" />
      </Fold>
    );
  if (message.type === 'system_message' && text.length > 240)
    return (
      <Fold
        label={open ? 'Fold the system message' : `System message, ${formatBytes(text.length)}`}
        preview={text}
        open={open}
        toggle={toggle}
      >
        <Markdown source={text.slice(0, 200_000)} className="max-w-[84ch] text-[14px] leading-[22px]" />
      </Fold>
    );
  const body = message.type === 'assistant_message' ? withoutRepeatedCalls(text) : text;
  if (body === '') return <span className="text-[13px] leading-[22px] text-ink-3">only the tool call below</span>;
  const tone = message.type === 'user_message' && isNudge(text) ? 'text-ink-3' : '';
  return (
    <Gated
      text={body}
      open={open}
      toggle={toggle}
      render={(part) => <Markdown source={part} className={`max-w-[84ch] text-[14px] leading-[22px] ${tone}`} />}
    />
  );
}

function Arguments({ call }: { call: RolloutMessageView }) {
  const entries = argumentsOf(call);
  if (entries === null)
    return call.content ? (
      <div className="mono whitespace-pre-wrap break-words px-[10px] py-[7px]">
        <PlainText text={call.content.slice(0, 50_000)} />
      </div>
    ) : null;
  if (entries.length === 0) return <div className="px-[10px] py-[5px] text-[12px] text-ink-3">no arguments</div>;
  return (
    <dl className="mono grid grid-cols-[max-content_minmax(0,1fr)] gap-x-[14px] px-[10px] py-[7px]">
      {entries.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="max-w-[24ch] truncate text-ink-3">
            <PlainText text={name} />
          </dt>
          <dd className="whitespace-pre-wrap break-words">
            <PlainText text={value.slice(0, 50_000)} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Call({
  item,
  decisive,
  open,
  toggle,
}: {
  item: Extract<TranscriptItem, { kind: 'call' }>;
  decisive: boolean;
  open: boolean;
  toggle: () => void;
}) {
  const { call, result } = item;
  const id = call?.callId ?? result?.callId;
  const output = result?.content ?? '';
  return (
    <div
      className={`overflow-hidden rounded-[4px] border ${decisive ? 'border-good shadow-[0_0_0_1px_var(--good)]' : 'border-line'} bg-paper-0`}
    >
      <div className="flex h-[30px] items-center gap-[10px] bg-paper-1 px-[10px]">
        <span className="mono truncate font-medium text-[var(--role-tool)]">{call?.name ?? 'result without a call'}</span>
        {isFinished(item) && <span className="chip text-good">● finished</span>}
        {!result && <span className="chip text-policy">▲ no result</span>}
        {result?.nonfinite && <span className="chip text-infrastructure">✕ not a finite number</span>}
        <span className="flex-1" />
        {result && <span className="label whitespace-nowrap">{formatBytes(output.length)}</span>}
        {id && (
          <span className="label max-w-[120px] truncate font-mono" title={`call ${id}`}>
            {id.slice(0, 12)}
          </span>
        )}
      </div>
      {call && (
        <div className="border-t border-line">
          <Arguments call={call} />
        </div>
      )}
      {result && (
        <div className="mono whitespace-pre-wrap break-words border-t border-dashed border-line-strong px-[10px] pb-[9px] pt-[7px]">
          {output === '' ? (
            <span className="text-ink-3">empty result</span>
          ) : (
            <Gated text={output} open={open} toggle={toggle} render={(part) => <PlainText text={part} />} />
          )}
        </div>
      )}
    </div>
  );
}

export const Row = memo(function Row({ item, decisive, open, toggle }: RowProps) {
  const flip = () => toggle(item.anchor);
  if (item.kind === 'gap') {
    const count = item.to - item.from + 1;
    return (
      <Shell who="gap" rule="border-infrastructure" item={item}>
        <p className="text-[12px] leading-[22px] text-infrastructure">
          ✕ {count === 1 ? `Message ${item.from} is missing: it was` : `${count} messages are missing (${item.from}–${item.to}): they were`}{' '}
          never received, later ones were.
        </p>
      </Shell>
    );
  }
  if (item.kind === 'call') {
    const rule = isFinished(item) ? 'border-good' : ruleOf.tool_call;
    return (
      <Shell who={`turn ${item.turn}`} rule={rule} item={item}>
        <Call item={item} decisive={decisive} open={open} toggle={flip} />
      </Shell>
    );
  }
  const { message } = item;
  return (
    <Shell who={roleOf[message.type]} rule={ruleOf[message.type]} item={item}>
      <div className={decisive ? 'rounded-[4px] border border-good px-2 shadow-[0_0_0_1px_var(--good)]' : ''}>
        <Message message={message} open={open} toggle={flip} />
      </div>
      {message.isFinished && <span className="chip mt-1 text-good">● finished</span>}
    </Shell>
  );
});
