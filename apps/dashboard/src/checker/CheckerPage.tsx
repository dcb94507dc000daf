import { useNavigate, useSearch } from '@tanstack/react-router';
import { useDeferredValue, useMemo, useState } from 'react';
import { formatCount } from '../format/number.ts';
import { CopyButton } from '../frame/CopyButton.tsx';
import { Crumb, TopBar } from '../frame/page.tsx';
import { EXAMPLES, textOf } from './examples.ts';
import { check, type CheckResult, type Wrapping } from './check.ts';
import { reportOf, verdictOf } from './report.ts';
import { HowToSend } from './HowToSend.tsx';
import { ResolvedRollout } from './ResolvedRollout.tsx';

const wrappings: Record<Wrapping, string> = {
  none: '',
  event: 'One event. A client sends it as {"events": [event]}.',
  list: 'A list of events. A client sends it as {"events": list}.',
  lines: 'Several lines. A client sends their events in one list.',
};
/** Rollouts of a batch that are shown. Problems are always listed. */
const MAX_SHOWN = 20;

/** Shows how the server would read a pasted upload. The text does not leave the browser. */
export function CheckerPage() {
  const { example } = useSearch({ from: '/check' });
  const navigate = useNavigate({ from: '/check' });
  const chosen = EXAMPLES.find(({ id }) => id === example);
  // The address has only the chosen example, because a pasted text can be confidential.
  const [pasted, setPasted] = useState<string | null>(null);
  const text = pasted ?? (chosen ? textOf(chosen) : '');
  const [now] = useState(Date.now);
  const deferredText = useDeferredValue(text);
  const result = useMemo(() => (deferredText.trim() === '' ? null : check(deferredText, now)), [deferredText, now]);
  const choose = (id: string) => {
    setPasted(null);
    void navigate({ search: { example: id || undefined }, replace: true });
  };
  return (
    <>
      <TopBar title="Check an upload" crumbs={<Crumb>Check an upload</Crumb>}>
        {result && <CopyButton text={reportOf(result)} label="Copy report" />}
      </TopBar>
      <div className="grid h-full min-h-0 grid-cols-[minmax(320px,5fr)_minmax(0,9fr)] max-[1000px]:h-auto max-[1000px]:grid-cols-1">
        <section aria-label="Upload" className="flex min-h-[320px] min-w-0 flex-col border-r border-line">
          <div className="flex min-h-[40px] flex-none flex-wrap items-center gap-2 border-b border-line px-4 py-[5px]">
            <label className="flex items-center gap-2">
              <span className="label">As sent by</span>
              <select className="input" value={pasted === null ? (chosen?.id ?? '') : ''} onChange={(event) => choose(event.target.value)}>
                <option value="">{pasted === null ? 'Choose an example' : 'Pasted text'}</option>
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
            placeholder={'Paste one event, a list of events, {"events": […]}, or JSON lines.\n\nThe text stays in this browser.'}
            spellCheck={false}
            autoComplete="off"
            wrap="off"
            value={text}
            onChange={(event) => setPasted(event.target.value)}
          />
        </section>
        <section aria-label="Result" className="min-h-0 min-w-0 overflow-auto" aria-busy={deferredText !== text}>
          {result ? <Result result={result} /> : <Introduction />}
          <HowToSend trainer={chosen?.id} />
        </section>
      </div>
    </>
  );
}

const Introduction = () => (
  <div className="border-b border-line px-4 py-4">
    <h2 className="strong">How does Palestra read an upload?</h2>
    <p className="max-w-[84ch] text-ink-2">
      The checker shows the step, group, sample, reward and other fields of an upload, with the rule and the source of each. Paste what your
      trainer sends, or choose an example.
    </p>
  </div>
);

function Result({ result }: { result: CheckResult }) {
  const { problems, rollouts, wrapping, status } = result;
  const more = rollouts.length - MAX_SHOWN;
  return (
    <>
      <div className="flex min-h-[40px] flex-col justify-center border-b border-line px-4 py-[6px]">
        <p role="status" className={`strong ${status === 200 && problems.length === 0 ? '' : 'text-bad'}`}>
          {status !== 200 || problems.length > 0 ? '✕ ' : ''}
          {verdictOf(result)}
        </p>
        {wrappings[wrapping] && <p className="text-ink-3">{wrappings[wrapping]}</p>}
        {problems.length > 0 && (
          <ul aria-label="Problems" className="mt-2 max-h-[220px] overflow-auto">
            {problems.map(({ target, text }) => (
              <li key={target} className="grid grid-cols-[110px_minmax(0,1fr)] border-t border-line py-1">
                <code>{target}</code>
                <span>{text}</span>
              </li>
            ))}
          </ul>
        )}
      </div>
      {rollouts.slice(0, MAX_SHOWN).map((rollout) => (
        <ResolvedRollout key={rollout.normalised.id} rollout={rollout} />
      ))}
      {more > 0 && (
        <p className="border-b border-line px-4 py-3 text-ink-3">{formatCount(more)} more rollouts. The copied report has all of them.</p>
      )}
    </>
  );
}
