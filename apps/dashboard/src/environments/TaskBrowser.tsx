import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { JsonValue } from '@palestra/protocol';
import { useState } from 'react';
import { TASK_PAGE, tasksQuery } from '../data/queries.ts';
import { formatCount } from '../format/number.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { PlainText } from '../text/PlainText.tsx';

const oneLine = (spec: JsonValue): string => (typeof spec === 'string' ? spec : JSON.stringify(spec)).slice(0, 400);

function Task({ index, spec }: { index: number; spec: JsonValue }) {
  const [open, setOpen] = useState(false);
  return (
    <li className="border-b border-line">
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="grid h-[28px] w-full grid-cols-[56px_minmax(0,1fr)] items-center gap-3 text-left hover:bg-paper-1"
      >
        <span className="num text-ink-3">{index}</span>
        <span className="mono truncate">
          <PlainText text={oneLine(spec)} />
        </span>
      </button>
      {open && (
        <pre className="code-block mb-2 ml-[68px] max-h-[320px] overflow-auto">
          <PlainText text={JSON.stringify(spec, null, 2).slice(0, 100_000)} />
        </pre>
      )}
    </li>
  );
}

interface TaskBrowserProps {
  owner: string;
  name: string;
  variant: string;
  split: string;
  start: number;
  go: (start: number) => void;
}

/** The tasks of a split by page; a row opens to the whole task_spec. */
export function TaskBrowser({ owner, name, variant, split, start, go }: TaskBrowserProps) {
  const page = useQuery({ ...tasksQuery(owner, name, variant, split, start), placeholderData: keepPreviousData });
  if (page.error) return <ErrorState error={page.error} retry={() => void page.refetch()} />;
  if (!page.data) return <SkeletonRows count={8} />;
  const { tasks, total } = page.data;
  const last = start + tasks.length;
  const hasMore = total === null ? tasks.length === TASK_PAGE : last < total;
  if (tasks.length === 0) return <p className="py-2 text-ink-3">This split has no task {start > 0 ? 'from here on' : ''}.</p>;
  return (
    <>
      <ul>
        {tasks.map((task) => (
          <Task key={`${split} ${task.index}`} index={task.index} spec={task.task_spec} />
        ))}
      </ul>
      <div className="flex items-center gap-2 py-2">
        <button type="button" className="button" disabled={start === 0} onClick={() => go(Math.max(0, start - TASK_PAGE))}>
          Previous
        </button>
        <button type="button" className="button" disabled={!hasMore} onClick={() => go(start + TASK_PAGE)}>
          Next
        </button>
        <span className="label">
          {formatCount(start)}–{formatCount(last - 1)} {total === null ? '' : `of ${formatCount(total)}`}
        </span>
      </div>
    </>
  );
}
