import type { RunFilter } from '../data/run-queries.ts';

/** Which steps are compared: those that every run has, all of each run, or a range. */
export function StepsChoice({ steps, setFilter }: { steps: string | undefined; setFilter: (change: Partial<RunFilter>) => void }) {
  const range = steps === 'all' ? undefined : steps;
  const choices = [
    ['Common steps', undefined],
    ['All steps', 'all'],
  ] as const;
  return (
    <span role="group" aria-label="Compared steps" className="flex items-center gap-1">
      {choices.map(([label, value]) => (
        <button
          key={label}
          type="button"
          className="button aria-pressed:border-accent aria-pressed:text-ink-1"
          aria-pressed={steps === value}
          onClick={() => setFilter({ steps: value })}
        >
          {label}
        </button>
      ))}
      <input
        key={range}
        className="input num w-[96px]"
        aria-label="Range of common steps"
        placeholder="40..80"
        defaultValue={range}
        onBlur={(event) => event.target.value !== (range ?? '') && setFilter({ steps: event.target.value || undefined })}
        onKeyDown={(event) => event.key === 'Enter' && event.currentTarget.blur()}
      />
    </span>
  );
}
