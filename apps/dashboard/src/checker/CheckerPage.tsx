import { useNavigate, useSearch } from '@tanstack/react-router';
import { useDeferredValue, useMemo, useState } from 'react';
import { formatCount } from '../format/number.ts';
import { CopyButton } from '../frame/CopyButton.tsx';
import { Crumb, TopBar } from '../frame/page.tsx';
import { EXAMPLES, textOf } from './examples.ts';
import { check, type Checked, type Wrapping } from './read.ts';
import { reportOf, verdictOf } from './report.ts';
import { HowToSend } from './HowToSend.tsx';
import { Resolved } from './Resolved.tsx';

const wrappings: Record<Wrapping, string> = {
  none: '',
  event: 'One event: a client sends it as {"events": [it]}.',
  list: 'A list of events: a client sends it as {"events": list}.',
  lines: 'Several lines: a client sends their events in one list.',
};
/** Rollouts of a pasted batch that are shown; their problems are all listed. */
const SHOWN = 20;

/** What a pasted upload resolves to, before a trainer sends it. Everything happens in the browser: the text goes nowhere. */
export function CheckerPage() {
  const { example } = useSearch({ from: '/check' });
  const navigate = useNavigate({ from: '/check' });
  const chosen = EXAMPLES.find(({ id }) => id === example);
  // Only the choice of an example is in the address: what is pasted may be nobody else's business.
  const [pasted, setPasted] = useState<string | null>(null);
  const text = pasted ?? (chosen ? textOf(chosen) : '');
  const [now] = useState(Date.now);
  const read = useDeferredValue(text);
  const checked = useMemo(() => (read.trim() === '' ? null : check(read, now)), [read, now]);
  const choose = (id: string) => {
    setPasted(null);
    void navigate({ search: { example: id || undefined }, replace: true });
  };
  return (
    <>
      <TopBar title="Check an upload" crumbs={<Crumb>Check an upload</Crumb>}>
        {checked && <CopyButton text={reportOf(checked)} label="Copy the answer as a message" />}
      </TopBar>
      <div className="grid h-full min-h-0 grid-cols-[minmax(320px,5fr)_minmax(0,9fr)] max-[1000px]:h-auto max-[1000px]:grid-cols-1">
        <section aria-label="The upload" className="flex min-h-[320px] min-w-0 flex-col border-r border-line">
          <div className="flex min-h-[40px] flex-none flex-wrap items-center gap-2 border-b border-line px-4 py-[5px]">
            <label className="flex items-center gap-2">
              <span className="label">As sent by</span>
              <select className="input" value={pasted === null ? (chosen?.id ?? '') : ''} onChange={(event) => choose(event.target.value)}>
                <option value="">{pasted === null ? 'choose an example' : 'what you pasted'}</option>
                {EXAMPLES.map(({ id, name }) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
            <span className="flex-1" />
            <button type="button" className="button" disabled={text === ''} onClick={() => choose('')}>
              Clear
            </button>
          </div>
          <textarea
            className="mono min-h-0 flex-1 resize-none bg-paper-0 px-4 py-3 outline-none focus-visible:outline-2"
            aria-label="An event or a batch, as JSON"
            placeholder={'Paste one event, a list of events, {"events": […]}, or JSON lines.\n\nIt stays in this browser.'}
            spellCheck={false}
            autoComplete="off"
            wrap="off"
            value={text}
            onChange={(event) => setPasted(event.target.value)}
          />
        </section>
        <section aria-label="What it resolves to" className="min-h-0 min-w-0 overflow-auto" aria-busy={read !== text}>
          {checked ? <Answer checked={checked} /> : <Nothing />}
          <HowToSend trainer={chosen?.id} />
        </section>
      </div>
    </>
  );
}

const Nothing = () => (
  <div className="border-b border-line px-4 py-4">
    <h2 className="strong">What would Palestra make of it?</h2>
    <p className="max-w-[84ch] text-ink-2">
      Step, group, sample, reward and the rest of an upload, each with the rule that found it and the field that it was read from. Paste
      what your trainer sends, or choose an example at the left.
    </p>
  </div>
);

function Answer({ checked }: { checked: Checked }) {
  const { problems, rollouts, wrapping, status } = checked;
  const more = rollouts.length - SHOWN;
  return (
    <>
      <div className="flex min-h-[40px] flex-col justify-center border-b border-line px-4 py-[6px]">
        <p role="status" className={`strong ${status === 200 && problems.length === 0 ? '' : 'text-bad'}`}>
          {status !== 200 || problems.length > 0 ? '✕ ' : ''}
          {verdictOf(checked)}
        </p>
        {wrappings[wrapping] && <p className="text-ink-3">{wrappings[wrapping]}</p>}
        {problems.length > 0 && (
          <ul aria-label="Problems" className="mt-2 max-h-[220px] overflow-auto">
            {problems.map(({ place, text }) => (
              <li key={place} className="grid grid-cols-[110px_minmax(0,1fr)] border-t border-line py-1">
                <code>{place}</code>
                <span>{text}</span>
              </li>
            ))}
          </ul>
        )}
      </div>
      {rollouts.slice(0, SHOWN).map((rollout) => (
        <Resolved key={rollout.result.id} rollout={rollout} />
      ))}
      {more > 0 && (
        <p className="border-b border-line px-4 py-3 text-ink-3">and {formatCount(more)} more rollouts, which the message has, too</p>
      )}
    </>
  );
}
