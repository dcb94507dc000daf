import { Link } from '@tanstack/react-router';
import { type FormEvent, lazy, type ReactNode, Suspense, useState } from 'react';
import type { BulkLabel } from '../data/selection.ts';
import { formatCount, plural } from '../format/number.ts';
import { Menu, MenuItem } from '../frame/Menu.tsx';
import { Popover } from '../frame/Popover.tsx';
import { useRun } from '../run/context.ts';
import { type Chosen, annotateProblem, compareProblem, countOf } from './selection.ts';
import { ShareSelection } from './ShareSelection.tsx';
import { type Bulk, useBulk } from './useBulk.ts';

const ExportDialog = lazy(async () => ({ default: (await import('../exports/ExportDialog.tsx')).ExportDialog }));

interface Props {
  /** What is chosen, in words: `3 groups, 12 rollouts`. */
  text: ReactNode;
  /** null while it is counted, and when it cannot be chosen. */
  chosen: Chosen | null;
  /** Why nothing can be done with the selection. */
  problem?: string | null;
  /** A button that chooses everything. */
  offer?: ReactNode;
  onClear: () => void;
}

/** The number of chosen rows and the actions on their rollouts. */
export function SelectionBar({ text, chosen, problem = null, offer, onClear }: Props) {
  const { run } = useRun();
  const [exporting, setExporting] = useState(false);
  const { bulk, start, stop, resume } = useBulk(run.id, chosen);
  const refused = chosen === null ? (problem ?? 'Counting the rollouts…') : annotateProblem(chosen);
  const rollouts = chosen === null ? 'rollouts' : `${formatCount(countOf(chosen))} ${countOf(chosen) === 1 ? 'rollout' : 'rollouts'}`;
  return (
    <section
      aria-label="Selection"
      className="flex min-h-[42px] flex-none flex-wrap items-center gap-2 border-t border-line-strong bg-accent-wash px-3 py-[6px]"
    >
      <span role="status" className="strong tabular-nums">
        {text}
      </span>
      {offer}
      {problem && <span className="text-policy">▲ {problem}</span>}
      {bulk && <Outcome bulk={bulk} onStop={stop} onResume={resume} />}
      <span className="flex-1" />
      {bulk?.state !== 'running' && (
        <span role="group" aria-label="Actions on the selection" className="flex flex-wrap items-center gap-2">
          {refused === null ? (
            <>
              <TagForm rollouts={rollouts} onTag={(tag) => start({ tag })} />
              <Menu label="Verdict for the selection" button="Verdict ▾">
                {(['good', 'bad', 'exploit'] as const).map((verdict) => (
                  <MenuItem key={verdict} onSelect={() => start({ verdict })}>
                    {verdictNames[verdict]}
                  </MenuItem>
                ))}
              </Menu>
            </>
          ) : (
            <>
              <Unavailable reason={refused}>Tag</Unavailable>
              <Unavailable reason={refused}>Verdict</Unavailable>
            </>
          )}
          <Compare chosen={chosen} />
          {chosen === null ? (
            <Unavailable reason={refused!}>Export</Unavailable>
          ) : (
            <button type="button" className="button" onClick={() => setExporting(true)}>
              Export
            </button>
          )}
          {chosen === null ? <Unavailable reason={refused!}>Share</Unavailable> : <ShareSelection chosen={chosen} />}
        </span>
      )}
      <button type="button" className="button" aria-keyshortcuts="Escape" onClick={onClear}>
        Clear
      </button>
      {exporting && chosen && (
        <Suspense>
          <ExportDialog
            q={chosen.kind === 'query' ? chosen.q : ''}
            of={chosen.kind === 'query' ? { as_of: chosen.asOf } : { rollouts: [...chosen.ids] }}
            open
            onClose={() => setExporting(false)}
          />
        </Suspense>
      )}
    </section>
  );
}

const verdictNames = { good: 'Good', bad: 'Bad', exploit: 'Exploit' } as const;

/** A button without effect that says why. It keeps the focus, so that the reason can be read. */
function Unavailable({ reason, children }: { reason: string; children: ReactNode }) {
  return (
    <button type="button" className="button opacity-60" aria-disabled="true" title={reason} aria-description={reason}>
      {children}
    </button>
  );
}

function Compare({ chosen }: { chosen: Chosen | null }) {
  const reason = chosen === null ? 'Select 2 to 4 rollouts to compare them' : compareProblem(chosen);
  if (chosen?.kind !== 'rollouts' || reason !== null) return <Unavailable reason={reason ?? ''}>Compare</Unavailable>;
  return (
    <Link to="/compare" search={{ rollouts: chosen.ids.join(',') }} className="button">
      Compare {chosen.ids.length}
    </Link>
  );
}

function TagForm({ rollouts, onTag }: { rollouts: string; onTag: (tag: string) => void }) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const tag = (new FormData(event.currentTarget).get('tag') as string).trim();
    // The actions disappear while the tag is written, and the form with them.
    if (tag !== '') onTag(tag);
  };
  return (
    <Popover label="Tag the selection" button="Tag ▾" align="end">
      <form onSubmit={submit} className="flex items-center gap-2">
        <input className="input min-w-0 flex-1" name="tag" required maxLength={100} aria-label="Tag" placeholder="Tag name" />
        <button type="submit" className="button primary">
          Tag {rollouts}
        </button>
      </form>
    </Popover>
  );
}

const done = (label: BulkLabel): string => ('tag' in label ? `tagged “${label.tag}”` : `marked ${label.verdict}`);

/** Progress and outcome of an annotation. */
function Outcome({ bulk, onStop, onResume }: { bulk: Bulk; onStop: () => void; onResume: () => void }) {
  const { progress, total, state, label, error } = bulk;
  const count = progress?.done ?? 0;
  if (state === 'done')
    return (
      <span role="status" className="text-good">
        ✓ {plural(count, 'rollout')} {done(label)}
        {progress!.unchanged > 0 && <span className="text-ink-2">, {formatCount(progress!.unchanged)} of them already</span>}
        {progress!.notFound > 0 && <span className="text-policy">, {formatCount(progress!.notFound)} not found</span>}
      </span>
    );
  return (
    <span className="flex flex-wrap items-center gap-2">
      <progress className="w-[120px]" max={Math.max(1, total)} value={count} aria-label={`Rollouts ${done(label)}`} />
      <span className="tabular-nums">
        {formatCount(count)} of {formatCount(total)} {done(label)}
      </span>
      {error && (
        <span role="alert" className="text-bad">
          {error.message}
        </span>
      )}
      <button type="button" className="button" onClick={state === 'running' ? onStop : onResume}>
        {state === 'running' ? 'Stop' : 'Continue'}
      </button>
    </span>
  );
}
