import type { RolloutMessageView } from '@palestra/protocol';
import { formatBytes } from '../../format/number.ts';
import { membersOf, parseTree } from '../../text/json.ts';
import { JsonBody } from '../../text/JsonBody.tsx';
import { PlainText } from '../../text/PlainText.tsx';
import { Body } from './Body.tsx';
import { useRollout } from '../context.ts';
import type { RowProps } from './row-props.ts';
import { OUTLINE_ERROR, OUTLINE_PARSE_ERROR, type TranscriptItem } from '../transcript.ts';

/** Characters of one argument in a collapsed card. The Raw tab has all of them. */
const MAX_ARGUMENT_CHARACTERS = 4_096;
/** Characters of JSON in one line, for example a short list. */
const MAX_LINE_CHARACTERS = 60;

/** A text, or JSON as a tree unless it fits into a line. */
function Argument({ value, open, toggle }: { value: unknown; open: boolean; toggle: () => void }) {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const tree = text.length > MAX_LINE_CHARACTERS ? (typeof value === 'string' ? parseTree(value) : value) : null;
  if (tree !== null && typeof tree === 'object') return <JsonBody text={text} value={tree} openLevels={1} />;
  const shown = open ? text : text.slice(0, MAX_ARGUMENT_CHARACTERS);
  return (
    <>
      <PlainText text={shown} />
      {shown.length < text.length && (
        <button type="button" className="link ml-2 font-sans" onClick={toggle}>
          Show all ({formatBytes(text.length)})
        </button>
      )}
    </>
  );
}

function Arguments({ call, open, toggle }: { call: RolloutMessageView } & Pick<RowProps, 'open'> & { toggle: () => void }) {
  const entries = call.body_bytes === undefined ? membersOf(call.content) : null;
  if (entries === null)
    return call.content ? (
      <div className="mono whitespace-pre-wrap break-words px-[10px] py-[7px]">
        <Body message={call} kind="plain" open={open} toggle={toggle} />
      </div>
    ) : null;
  if (entries.length === 0) return <div className="px-[10px] py-[5px] text-[12px] text-ink-3">No arguments</div>;
  return (
    <dl className="mono grid grid-cols-[max-content_minmax(0,1fr)] gap-x-[14px] px-[10px] py-[7px]">
      {entries.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="max-w-[24ch] truncate text-ink-3">
            <PlainText text={name} />
          </dt>
          <dd className="min-w-0 whitespace-pre-wrap break-words">
            <Argument value={value} open={open !== 'folded'} toggle={toggle} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

const failureClasses: Record<string, readonly [mark: string, className: string, text: string]> = {
  policy: ['▲', 'text-policy', 'Policy: invalid call'],
  environment: ['◆', 'text-environment', 'Environment error'],
  infrastructure: ['✕', 'text-infrastructure', 'Infrastructure error'],
};

/** The failure class from the ledger if the ledger has the call: `▲` policy, `◆` environment, `✕` infrastructure. */
function Failure({ item, row }: { item: Extract<TranscriptItem, { kind: 'call' }>; row: RowProps }) {
  const { calls } = useRollout();
  const failureClass = calls.get(item.anchor)?.failure_class ?? null;
  const known = failureClass === null ? undefined : (failureClasses[failureClass] ?? (['✕', 'text-infrastructure', failureClass] as const));
  if (known) return <span className={`chip bg-paper-0 ${known[1]}`} title="From the session ledger">{`${known[0]} ${known[2]}`}</span>;
  if (row.error & OUTLINE_PARSE_ERROR) return <span className="chip bg-paper-0 text-policy">▲ Not parsed</span>;
  if (row.error & OUTLINE_ERROR) return <span className="chip bg-paper-0 text-policy">▲ Error</span>;
  return null;
}

/** A call and its result: the tool, its arguments as key and value, the result below. */
export function CallCard({
  row,
  item,
  finished,
  toggle,
}: {
  row: RowProps;
  item: Extract<TranscriptItem, { kind: 'call' }>;
  finished: boolean;
  toggle: () => void;
}) {
  const { calls, verified } = useRollout();
  const { message: call, result, decisive, open } = row;
  const id = call?.callId ?? result?.callId;
  const loaded = (item.call === null || call !== undefined) && (item.result === null || result !== undefined);
  const inLedger = calls.has(item.anchor);
  return (
    <div
      className={`overflow-hidden rounded-[4px] border ${decisive ? 'border-good shadow-[0_0_0_1px_var(--good)]' : 'border-line'} bg-paper-0`}
    >
      <div className="flex h-[30px] items-center gap-[10px] bg-paper-1 px-[10px]">
        <span className="mono truncate font-medium text-[var(--role-tool)]">
          {item.call === null ? 'Result without a call' : <PlainText text={row.tool ?? call?.name ?? 'tool'} />}
        </span>
        {finished && <span className="chip text-good">● Finished</span>}
        {item.result === null && <span className="chip bg-paper-0 text-policy">▲ No result</span>}
        <Failure item={item} row={row} />
        {result?.nonfinite && <span className="chip text-infrastructure">✕ NaN, Infinity, or a reward out of range</span>}
        <span className="flex-1" />
        {inLedger && (
          <span className="label whitespace-nowrap" title="This call is in the session ledger">
            {verified === 'verified' ? '✓ Verified' : 'In the ledger'}
          </span>
        )}
        {item.result !== null && <span className="label whitespace-nowrap">{formatBytes(row.bytes)}</span>}
        {id && (
          <span className="label max-w-[120px] flex-none truncate font-mono" title={`Call id ${id}`}>
            {id.slice(0, 12)}
          </span>
        )}
      </div>
      {!loaded && <div className="skeleton m-[10px] h-[10px] w-1/3" aria-hidden="true" />}
      {call && (
        <div className="border-t border-line">
          <Arguments call={call} open={open} toggle={toggle} />
        </div>
      )}
      {result && (
        <div className="border-t border-dashed border-line-strong px-[10px] pb-[9px] pt-[7px]">
          {(result.content ?? '') === '' ? (
            <span className="mono text-ink-3">Empty result</span>
          ) : (
            <Body message={result} kind="plain" open={open} toggle={toggle} />
          )}
        </div>
      )}
    </div>
  );
}
