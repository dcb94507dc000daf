import { formatCount } from '../format/number.ts';
import { PlainText } from '../text/PlainText.tsx';
import { fieldsOf, missingOf, oddities, type ResolvedField } from './fields.ts';
import type { CheckedRollout } from './read.ts';
import { titleOf } from './report.ts';

/** The marks of dashboard.md 2.2. */
function Value({ field }: { field: ResolvedField }) {
  if (field.value === null) return <span className="text-ink-3">–</span>;
  const text = <PlainText text={field.value} />;
  if (field.provenance === 'parsed') return <span className="underline decoration-dotted decoration-ink-3 underline-offset-3">{text}</span>;
  // An estimate of tokens has its own mark.
  if (field.provenance === 'inferred' && !field.value.startsWith('≈'))
    return (
      <>
        <span className="text-ink-3">~</span>
        {text}
      </>
    );
  return text;
}

const countOf = (count: number, what: string) => `${formatCount(count)} ${what}${count === 1 ? '' : 's'}`;
const head = 'head-cell !px-0 font-[450]';

/** One rollout of the upload: every field with how it came to be known, and what the recommended contract would add. */
export function Resolved({ rollout }: { rollout: CheckedRollout }) {
  const fields = fieldsOf(rollout);
  const missing = missingOf(rollout);
  const odd = oddities(rollout);
  const { result } = rollout;
  return (
    <section aria-label={titleOf(rollout)} className="border-b border-line px-4 py-3">
      <h2 className="flex items-baseline gap-2">
        <span className="strong min-w-0 truncate" title={titleOf(rollout)}>
          <PlainText text={titleOf(rollout)} />
        </span>
        <span className="chip flex-none" title="Which integration its fields look like">
          {result.source}
        </span>
        <span className="label flex-none">
          {countOf(result.messageCount, 'message')}, {countOf(result.calls, 'call')}
        </span>
      </h2>
      {rollout.start === null && (
        <p className="text-ink-2">Its start event is not here: run, environment, split and metadata are in that one. It may come later.</p>
      )}
      {odd.map((text) => (
        <p key={text} className="text-policy">
          ▲ {text}
        </p>
      ))}
      <table className="mt-1 w-full table-fixed border-collapse">
        <caption className="sr-only">What its fields resolve to</caption>
        <colgroup>
          <col className="w-[96px]" />
          <col />
          <col className="w-[82px]" />
          <col className="w-[28%]" />
          <col className="w-[26%]" />
        </colgroup>
        <thead>
          <tr className="text-left">
            {['Field', 'Value', 'Known by', 'Rule', 'Read from'].map((name) => (
              <th key={name} scope="col" className="border-b border-line">
                <span className={head}>{name}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {fields.map((field) => (
            <tr key={field.name} className="h-[var(--row)] border-b border-line">
              <th scope="row" className="text-left font-[450] text-ink-2">
                {field.name}
              </th>
              <td className="py-1 pr-3 tabular-nums [overflow-wrap:anywhere]">
                <Value field={field} />
              </td>
              <td className={field.provenance === 'reported' ? '' : 'text-ink-2'}>{field.provenance}</td>
              <td className="py-1 pr-3 text-ink-3">{field.rule}</td>
              <td className="py-1 [overflow-wrap:anywhere]">
                {field.source === null ? <span className="text-ink-3">–</span> : <code>{field.source}</code>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {missing.length === 0 ? (
        <p className="mt-3 text-good">✓ Everything of the recommended contract is there.</p>
      ) : (
        <div className="mt-3">
          <h3 className="label mb-1">Not sent, of the recommended contract</h3>
          <ul aria-label="Not sent">
            {missing.map(({ key, without, stray }) => (
              <li key={key} className="grid grid-cols-[190px_minmax(0,1fr)] gap-2 py-[2px]">
                <code>{key}</code>
                <span className="text-ink-2">
                  {without}
                  {stray !== null && (
                    <span className="text-policy">
                      {' '}
                      ▲ it stands in <code>{stray}</code>, where nothing reads it
                    </span>
                  )}
                </span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </section>
  );
}
