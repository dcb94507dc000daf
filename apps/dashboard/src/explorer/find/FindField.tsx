import { type RefObject, useState } from 'react';
import type { FindMode } from '../../data/find.ts';

/** Searches for words or a regex in the messages of the query's rollouts. Enter searches, Escape closes the search. */
export function FindField(props: {
  input: RefObject<HTMLInputElement | null>;
  find: string;
  mode: FindMode;
  onFind: (text: string, mode: FindMode) => void;
}) {
  const { input, find, mode, onFind } = props;
  const [text, setText] = useState(find);
  const [seen, setSeen] = useState(find);
  if (seen !== find) {
    setSeen(find);
    setText(find);
  }
  const regex = mode === 'regex';
  return (
    <form
      role="search"
      className="relative w-[180px] flex-none min-[1700px]:w-[320px]"
      onSubmit={(event) => {
        event.preventDefault();
        onFind(text.trim(), mode);
        input.current?.blur();
      }}
    >
      <input
        ref={input}
        type="search"
        className="input w-full pr-[34px]"
        aria-label="Find in the transcripts of the query"
        aria-keyshortcuts="/"
        placeholder="Find in transcripts  /"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return;
          event.preventDefault();
          setText('');
          input.current?.blur();
          if (find) onFind('', mode);
        }}
      />
      <button
        type="button"
        className={`mono absolute right-[3px] top-[3px] grid h-[22px] w-[26px] place-items-center rounded-[3px] hover:bg-paper-2 ${regex ? 'bg-accent-wash text-accent' : 'text-ink-3'}`}
        aria-pressed={regex}
        aria-label="As a regex"
        title="Search for a regex (RE2) instead of a phrase"
        onClick={() => onFind(text.trim(), regex ? 'text' : 'regex')}
      >
        .*
      </button>
    </form>
  );
}
