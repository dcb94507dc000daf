import { type Completion, printQuery, QueryError } from '@palestra/query';
import {
  type KeyboardEvent,
  type ReactNode,
  type Ref,
  useId,
  useImperativeHandle,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import { accept, complete, type KnownValues } from './complete.ts';
import { Highlighted } from './Highlighted.tsx';
import { readQuery } from './query-edit.ts';

export interface QueryBarHandle {
  focus: () => void;
}

interface Props {
  /** The text in the bar, valid or not. */
  draft: string;
  onDraft: (text: string) => void;
  /** Called with the canonical text of a valid query on Enter or when the bar loses the focus. */
  onApply: (text: string) => void;
  /** The error of the draft, after a pause in typing. */
  error: QueryError | null;
  /** The message shown below the error while the reader types. */
  problem: ReactNode;
  onWriting: (writing: boolean) => void;
  known: KnownValues;
  handle?: Ref<QueryBarHandle>;
}

const text = 'mono absolute inset-0 h-full w-full overflow-hidden whitespace-pre px-2 leading-[26px]';

/** The query as text, with syntax colours and completion (Tab, arrow keys); it becomes canonical when the bar loses the focus. */
export function QueryBar({ draft, onDraft, onApply, error, problem, onWriting, known, handle }: Props) {
  const input = useRef<HTMLInputElement>(null);
  const listId = useId();
  const [scrolled, setScrolled] = useState(0);
  const [cursor, setCursor] = useState<number | null>(null);
  const [active, setActive] = useState(-1);
  const [allKeys, setAllKeys] = useState(false);
  /** Where the caret goes when the text of a completion is in the input. */
  const [caret, setCaret] = useState<{ at: number } | null>(null);
  useImperativeHandle(handle, () => ({ focus: () => input.current?.select() }), []);
  // Before the next key, which a reader can press at once.
  useLayoutEffect(() => {
    if (caret === null) return;
    input.current!.setSelectionRange(caret.at, caret.at);
    setScrolled(input.current!.scrollLeft);
  }, [caret]);
  const found = useMemo(() => (cursor === null ? null : complete(draft, cursor, known)), [draft, cursor, known]);
  // All keys are offered only on request: while typing they would cover the list after each space.
  const fits = found !== null && (allKeys || found.to > found.from || found.candidates[0]?.kind === 'value');
  const candidates = fits ? found.candidates : [];
  const open = candidates.length > 0;

  const follow = () => {
    const element = input.current!;
    setScrolled(element.scrollLeft);
    if (cursor !== null) setCursor(element.selectionStart);
  };
  const insert = (candidate: Completion) => {
    const next = accept(draft, found!, candidate);
    setAllKeys(false);
    onDraft(next.text);
    setActive(-1);
    setCursor(next.cursor);
    setCaret({ at: next.cursor });
  };
  const close = () => {
    setCursor(null);
    setAllKeys(false);
    setActive(-1);
  };
  const apply = () => {
    close();
    const query = readQuery(draft);
    if (query instanceof QueryError) return;
    const canonical = printQuery(query);
    onDraft(canonical);
    onApply(canonical);
  };
  const openCompletions = () => {
    setCursor(input.current!.selectionStart);
    setAllKeys(true);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // Enter and the arrows choose among the words of an input method.
    if (event.nativeEvent.isComposing) return;
    const chosen = candidates[active];
    const typed = found !== null && found.to > found.from;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      if (!open) openCompletions();
      else setActive((active + step + candidates.length + (active < 0 && step < 0 ? 1 : 0)) % candidates.length);
    } else if (event.key === 'Enter') {
      if (open && chosen) insert(chosen);
      else apply();
    } else if (event.key === 'Tab' && !event.shiftKey && open && (chosen || typed)) insert(chosen ?? candidates[0]!);
    else if (event.key === 'Escape' && open) close();
    else if (event.key === 'Escape') input.current?.blur();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div className="relative min-w-0 flex-1 max-[560px]:order-first max-[560px]:basis-full">
      <div className="relative h-[28px] overflow-hidden rounded-[4px] border border-line-strong bg-paper-0 focus-within:border-accent">
        <input
          ref={input}
          role="combobox"
          aria-label="Query"
          aria-expanded={open}
          aria-controls={listId}
          aria-autocomplete="list"
          aria-activedescendant={open && active >= 0 ? `${listId}-${active}` : undefined}
          aria-invalid={error !== null}
          aria-describedby={error ? 'query-error' : undefined}
          spellCheck={false}
          autoComplete="off"
          autoCapitalize="off"
          className={`${text} bg-transparent text-transparent caret-[var(--ink-1)] outline-none placeholder:text-ink-3`}
          placeholder="step:10.. reward:<0.2 tool:search has:error “some words”"
          value={draft}
          onChange={(event) => {
            onDraft(event.target.value);
            setCursor(event.target.selectionStart);
            setActive(-1);
            setAllKeys(false);
          }}
          onFocus={() => onWriting(true)}
          onKeyDown={onKeyDown}
          onKeyUp={(event) => /^(Arrow(Left|Right)|Home|End)$/.test(event.key) && follow()}
          onClick={() => (draft === '' ? openCompletions() : setCursor(input.current!.selectionStart))}
          onScroll={follow}
          onSelect={() => setScrolled(input.current!.scrollLeft)}
          onBlur={() => {
            onWriting(false);
            apply();
          }}
        />
        <div aria-hidden="true" className={`${text} pointer-events-none`}>
          <div style={{ transform: `translateX(${-scrolled}px)` }}>
            <Highlighted text={draft} error={error} />
          </div>
        </div>
      </div>
      <div
        className="absolute top-[30px] z-30 w-[460px] max-w-full overflow-hidden rounded-[4px] border border-line-strong bg-paper-0 shadow-lg"
        style={{
          left: `clamp(0px, calc(${(error && problem ? error.position : found?.from) ?? 0} * 1px * 7.2 - ${scrolled}px), calc(100% - 460px))`,
        }}
        hidden={!open && !problem}
      >
        {problem && <div className="flex min-h-[28px] items-center px-2">{problem}</div>}
        <ul id={listId} role="listbox" aria-label="Completions" hidden={!open} className="max-h-[264px] overflow-y-auto p-1">
          {candidates.map((candidate, index) => (
            <Option
              key={candidate.text}
              id={`${listId}-${index}`}
              candidate={candidate}
              active={index === active}
              insert={() => insert(candidate)}
            />
          ))}
        </ul>
      </div>
    </div>
  );
}

function Option({ id, candidate, active, insert }: { id: string; candidate: Completion; active: boolean; insert: () => void }) {
  return (
    <li
      id={id}
      role="option"
      aria-selected={active}
      ref={(element) => {
        if (active) element?.scrollIntoView({ block: 'nearest' });
      }}
      className="flex h-[26px] cursor-pointer items-center gap-3 rounded-[3px] px-2 hover:bg-paper-2 aria-selected:bg-paper-2"
      onMouseDown={(event) => {
        event.preventDefault();
        insert();
      }}
    >
      <span className="mono flex-none">{candidate.text}</span>
      <span className="label ml-auto truncate">{candidate.description}</span>
    </li>
  );
}
