import type { RolloutDiff } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useMemo, useRef, useState } from 'react';
import { diffQuery, messagesAtQuery } from '../data/rollout.ts';
import { formatCount, formatReward, plural, UNKNOWN } from '../format/number.ts';
import { taskLabel } from '../format/task.ts';
import { Loaded } from '../frame/Loaded.tsx';
import { ShareButton } from '../frame/ShareButton.tsx';
import { Crumb, Slash, TopBar } from '../frame/page.tsx';
import { Stop } from '../frame/Stop.tsx';
import { summaryOf, type Texts as TextsByIndex, useTextsAt } from '../groups/lane-texts.ts';
import { PlainText } from '../text/PlainText.tsx';
import { equalStart, pairedRows } from './pairing.ts';

type Row = RolloutDiff['rows'][number];
type Action = NonNullable<Row['a']>;
/** A longer text is cut here; the rollout page shows all of it. */
const SHOWN_CHARS = 600;
/** Rows rendered before and after the first divergence; buttons show the rest. */
const AROUND = 80;

function Head({ side, rollout }: { side: string; rollout: RolloutDiff['a'] }) {
  return (
    <div className="min-w-0 px-4 py-2">
      <div className="flex items-baseline gap-2">
        <span className="strong">{side}</span>
        <Link to="/rollout/$id" params={{ id: rollout.id }} search={{}} className="link truncate">
          <PlainText text={rollout.rolloutName ?? rollout.id} />
        </Link>
        <span className="num ml-auto strong">{formatReward(rollout.reward)}</span>
      </div>
      <div className="flex flex-wrap gap-x-3 text-ink-2">
        <span>{taskLabel(rollout)}</span>
        <span>{rollout.environment ?? UNKNOWN}</span>
        <span>step {rollout.step ?? UNKNOWN}</span>
        <span>sample {rollout.sample ?? UNKNOWN}</span>
        <span>{rollout.turns === null ? UNKNOWN : plural(rollout.turns, 'turn')}</span>
        <Stop stop={rollout.stop} />
      </div>
    </div>
  );
}

/** The text of the call or answer, and of the tool result after it. */
function Texts({ rollout, action }: { rollout: string; action: Action }) {
  const messages = useQuery(messagesAtQuery(rollout, action.index, 2));
  return (
    <Loaded query={messages}>
      {([first, next]) => (
        <>
          {first && <Text text={first.content ?? ''} />}
          {next?.type === 'tool_result' && <Text text={next.content ?? ''} />}
        </>
      )}
    </Loaded>
  );
}

function Text({ text }: { text: string }) {
  return (
    <pre className="mt-1 whitespace-pre-wrap border-t border-dashed border-line pt-1 text-ink-2 [overflow-wrap:anywhere]">
      <PlainText text={text.slice(0, SHOWN_CHARS)} />
      {text.length > SHOWN_CHARS && (
        <span className="label"> … {formatCount(text.length - SHOWN_CHARS)} more characters in the rollout</span>
      )}
    </pre>
  );
}

function Side({ rollout, action, open, texts }: { rollout: string; action: Action | null; open: boolean; texts: TextsByIndex }) {
  if (!action) return <div className="px-4 py-1 text-ink-3">{open ? 'No action' : ''}</div>;
  return (
    <div className="min-w-0 px-4 py-1">
      <div className="flex items-baseline gap-2">
        <span className={`mono flex-none ${action.error ? 'text-policy' : ''}`}>
          {action.error && '▲ '}
          <PlainText text={action.kind === 'answer' ? 'answer' : (action.tool ?? 'tool')} />
        </span>
        {!open && (
          <span className="mono min-w-0 flex-1 truncate text-ink-2" data-arguments>
            <PlainText text={summaryOf(action, texts)} />
          </span>
        )}
        <Link
          to="/rollout/$id"
          params={{ id: rollout }}
          hash={`m-${action.index}`}
          search={{}}
          className="label flex-none text-ink-2 hover:text-accent hover:underline"
        >
          #{action.index}
        </Link>
        {action.reward !== null && <span className="num ml-auto flex-none">{formatReward(action.reward)}</span>}
      </div>
      {open && <Texts rollout={rollout} action={action} />}
    </div>
  );
}

interface LineProps {
  row: Row;
  at: number;
  ids: readonly [string, string];
  texts: readonly [TextsByIndex, TextsByIndex];
  open: boolean;
  toggle: () => void;
}

function Line({ row, at, ids, texts, open, toggle }: LineProps) {
  return (
    <li
      className={`grid grid-cols-[minmax(0,1fr)_44px_minmax(0,1fr)] border-b border-line ${row.same ? '' : 'bg-bad-wash'}`}
      data-row-at={at}
    >
      <Side rollout={ids[0]} action={row.a} open={open} texts={texts[0]} />
      <button
        type="button"
        className="self-start py-1 text-center text-ink-3 hover:text-ink-1"
        aria-expanded={open}
        aria-label={`Row ${at + 1}: ${row.same ? 'the same' : 'different'}; ${open ? 'hide' : 'show'} its texts`}
        onClick={toggle}
      >
        {row.same ? '=' : row.a && row.b ? '≠' : row.a ? '◂' : '▸'}
      </button>
      <Side rollout={ids[1]} action={row.b} open={open} texts={texts[1]} />
    </li>
  );
}

function Rows({ rows, first, ids }: { rows: readonly Row[]; first: number | null; ids: readonly [string, string] }) {
  const [opened, setOpened] = useState<ReadonlySet<number>>(() => new Set(first === null ? [] : [first]));
  const [all, setAll] = useState(false);
  const mark = useRef<HTMLLIElement>(null);
  useEffect(() => {
    mark.current?.scrollIntoView({ block: 'center' });
  }, []);
  const start = all ? 0 : Math.max(0, (first ?? 0) - AROUND);
  const end = all ? rows.length : Math.min(rows.length, (first ?? 0) + AROUND);
  const shown = rows.slice(start, end);
  const a = useTextsAt(
    ids[0],
    shown.flatMap((row) => row.a?.index ?? []),
  );
  const b = useTextsAt(
    ids[1],
    shown.flatMap((row) => row.b?.index ?? []),
  );
  const toggle = (at: number) =>
    setOpened((old) => {
      const next = new Set(old);
      if (!next.delete(at)) next.add(at);
      return next;
    });
  const more = (count: number, where: string) =>
    count > 0 && (
      <li>
        <button type="button" className="link px-4 py-1" onClick={() => setAll(true)}>
          Show {formatCount(count)} rows {where}
        </button>
      </li>
    );
  return (
    <ol aria-label="Aligned actions of both rollouts">
      {more(start, 'before')}
      {shown.flatMap((row, i) => {
        const at = start + i;
        const line = <Line key={at} row={row} at={at} ids={ids} texts={[a, b]} open={opened.has(at)} toggle={() => toggle(at)} />;
        if (at !== first) return [line];
        return [
          <li key="first" ref={mark} className="border-b border-line px-4 py-1 strong text-bad" data-divergence>
            First divergence, at row {formatCount(at + 1)}
          </li>,
          line,
        ];
      })}
      {more(rows.length - end, 'after')}
    </ol>
  );
}

/** The actions of two rollouts, aligned where tool and arguments are equal. */
export function RolloutsComparison({ a, b }: { a: string; b: string }) {
  const diff = useQuery(diffQuery(a, b));
  const rows = useMemo(() => pairedRows(diff.data?.rows ?? []), [diff.data]);
  const navigate = useNavigate({ from: '/compare' });
  return (
    <>
      <TopBar
        title="Compare two rollouts"
        crumbs={
          <>
            <span>Compare</span>
            <Slash />
            <Crumb>2 rollouts</Crumb>
          </>
        }
      >
        <button type="button" className="button" onClick={() => void navigate({ search: (old) => ({ ...old, rollouts: `${b},${a}` }) })}>
          Swap sides
        </button>
        <ShareButton target={{ kind: 'rollouts', rollouts: [a, b] }} />
        <Link to="/rollout/$id" params={{ id: a }} search={{ diff: b }} className="button">
          Open A with differences
        </Link>
      </TopBar>
      <Loaded query={diff}>
        {(data) => (
          <div className="h-full overflow-auto">
            <div className="sticky top-0 z-10 grid grid-cols-[minmax(0,1fr)_44px_minmax(0,1fr)] border-b border-line bg-paper-1">
              <Head side="A" rollout={data.a} />
              <span aria-hidden="true" />
              <Head side="B" rollout={data.b} />
            </div>
            <p className="label border-b border-line px-4 py-2">
              {equalStart(data.first_divergence)} · {formatCount(data.same)} of {formatCount(rows.length)} rows are equal · reward B − A{' '}
              {data.a.reward === null || data.b.reward === null ? UNKNOWN : formatReward(data.b.reward - data.a.reward, { signed: true })}
              {data.a.task_index !== data.b.task_index && ' · the rollouts have different tasks'}
              {data.truncated && ' · only the first 2 000 actions are compared'}
            </p>
            <Rows key={`${a} ${b}`} rows={rows} first={data.first_divergence} ids={[a, b]} />
          </div>
        )}
      </Loaded>
    </>
  );
}
