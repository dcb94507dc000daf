import type { RolloutHeader } from '@palestra/protocol';
import { Link } from '@tanstack/react-router';
import { type KeyboardEvent, useEffect, useRef } from 'react';
import { formatCount } from '../format/number.ts';
import type { Find } from './useFind.ts';

interface FindBarProps {
  typed: string;
  setTyped: (text: string) => void;
  find: Find;
  selected: number;
  go: (row: number) => void;
  close: () => void;
  run: RolloutHeader['run'];
  /** Counts the commands that open the bar; each one selects the text. */
  openCount: number;
}

/** The bar of Ctrl-F: counts the messages with a text in the whole rollout. Enter goes to the next one. */
export function FindBar({ typed, setTyped, find, selected, go, close, run, openCount }: FindBarProps) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.select(), [openCount]);
  const { rows } = find;
  const at = rows.indexOf(selected);
  const move = (step: 1 | -1) => {
    if (rows.length === 0) return;
    const next = step > 0 ? rows.find((row) => row > selected) : rows.findLast((row) => row < selected);
    go(next ?? (step > 0 ? rows[0]! : rows.at(-1)!));
  };
  // Go to the first hit at once, as browsers do.
  const scrolledFor = useRef('');
  useEffect(() => {
    if (find.text === '' || scrolledFor.current === find.text || rows.length === 0) return;
    scrolledFor.current = find.text;
    if (!rows.includes(selected)) go(rows.find((row) => row > selected) ?? rows[0]!);
  }, [find.text, rows, selected, go]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter') move(event.shiftKey ? -1 : 1);
    else if (event.key === 'Escape') close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const count = `${formatCount(rows.length)}${find.more ? '+' : ''}`;
  const status = find.error
    ? find.error.message
    : find.text === ''
      ? 'Searches the whole transcript'
      : find.busy && rows.length === 0
        ? 'Searching…'
        : at >= 0
          ? `${formatCount(at + 1)} of ${count} messages`
          : `${count} ${rows.length === 1 ? 'message' : 'messages'}`;
  return (
    <search
      className="flex h-[40px] flex-none items-center gap-2 border-b border-line bg-paper-1 px-4"
      aria-label="Find in this rollout"
      data-screen-only
    >
      <input
        ref={input}
        type="text"
        className="input w-[320px] max-w-[50vw]"
        aria-label="Find in this rollout"
        placeholder="Find in this rollout"
        maxLength={120}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <button type="button" className="button" onClick={() => move(-1)} disabled={rows.length === 0} aria-label="Previous hit">
        ↑
      </button>
      <button type="button" className="button" onClick={() => move(1)} disabled={rows.length === 0} aria-label="Next hit">
        ↓
      </button>
      <span className="label" role="status" title="Searches the first 64 kB of each message and ignores case">
        {status}
      </span>
      <span className="flex-1" />
      {typed.trim() !== '' && (
        <Link
          to="/$org/runs/$run/rollouts"
          params={{ org: run.org, run: run.name }}
          search={{ find: typed.trim() } as never}
          className="link label"
        >
          Find in all rollouts of the run
        </Link>
      )}
      <button type="button" className="button" onClick={close}>
        Close <kbd>Esc</kbd>
      </button>
    </search>
  );
}
