import { plural } from '../format/number.ts';
import { PlainText } from '../text/PlainText.tsx';
import { fieldsOf, missingFieldsOf, type ResolvedField, warningsOf } from './fields.ts';
import type { CheckedRollout } from './check.ts';
import { titleOf } from './report.ts';

/** The value, marked with its provenance (docs/reference/metrics.md#provenance). */
function FieldValue({ field }: { field: ResolvedField }) {
  if (field.value === null) return <span className="text-ink-3">–</span>;
  const text = <PlainText text={field.value} />;
  if (field.provenance === 'parsed') return <span className="underline decoration-dotted decoration-ink-3 underline-offset-3">{text}</span>;
  // An estimated number of tokens already has the mark ≈.
  if (field.provenance === 'inferred' && !field.value.startsWith('≈'))
    return (
      <>
        <span className="text-ink-3">~</span>
        {text}
      </>
    );
  return text;
}

const headClass = 'head-cell !px-0 font-[450]';

/** One rollout of the upload: its fields with their provenance, and the recommended fields that it lacks. */
export function ResolvedRollout({ rollout }: { rollout: CheckedRollout }) {
  const fields = fieldsOf(rollout);
  const missing = missingFieldsOf(rollout);
  const warnings = warningsOf(rollout);
  const { normalised } = rollout;
  return (
    <section aria-label={titleOf(rollout)} className="border-b border-line px-4 py-3">
      <h2 className="flex items-baseline gap-2">
        <span className="strong min-w-0 truncate" title={titleOf(rollout)}>
          <PlainText text={titleOf(rollout)} />
        </span>
        <span className="chip flex-none" title="The integration that the fields match">
          {normalised.source}
        </span>
        <span className="label flex-none">
          {plural(normalised.messageCount, 'message')}, {plural(normalised.calls, 'call')}
        </span>
      </h2>
      {rollout.start === null && (
        <p className="text-ink-2">
          The start event is missing. It contains the run, environment, split and metadata. You can send it later.
        </p>
      )}
      {warnings.map((text) => (
        <p key={text} className="text-policy">
          ▲ {text}
        </p>
      ))}
      <table className="mt-1 w-full table-fixed border-collapse">
        <caption className="sr-only">Fields of the rollout</caption>
        <colgroup>
          <col className="w-[96px]" />
          <col />
          <col className="w-[82px]" />
          <col className="w-[28%]" />
          <col className="w-[26%]" />
        </colgroup>
        <thead>
          <tr className="text-left">
            {['Field', 'Value', 'Provenance', 'Rule', 'Source'].map((name) => (
              <th key={name} scope="col" className="border-b border-line">
                <span className={headClass}>{name}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {fields.map((field) => (
            <tr key={field.name} className="h-[var(--row)] border-b border-line">
              <th scope="row" className="text-left font-[450] text-ink-2 first-letter:uppercase">
                {field.name}
              </th>
              <td className="py-1 pr-3 tabular-nums [overflow-wrap:anywhere]">
                <FieldValue field={field} />
              </td>
              <td className={`first-letter:uppercase ${field.provenance === 'reported' ? '' : 'text-ink-2'}`}>{field.provenance}</td>
              <td className="py-1 pr-3 text-ink-3 first-letter:uppercase">{field.rule}</td>
              <td className="py-1 [overflow-wrap:anywhere]">
                {field.source === null ? <span className="text-ink-3">–</span> : <code>{field.source}</code>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {missing.length === 0 ? (
        <p className="mt-3 text-good">✓ The upload has all recommended fields.</p>
      ) : (
        <div className="mt-3">
          <h3 className="label mb-1">Missing recommended fields</h3>
          <ul aria-label="Missing recommended fields">
            {missing.map(({ key, effect, misplaced }) => (
              <li key={key} className="grid grid-cols-[190px_minmax(0,1fr)] gap-2 py-[2px]">
                <code>{key}</code>
                <span className="text-ink-2 first-letter:uppercase">
                  {effect}
                  {misplaced !== null && (
                    <span className="text-policy">
                      {' '}
                      ▲ Found in <code>{misplaced}</code>, where the server does not read it
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
