import { formatCount } from '../../format/number.ts';
import type { Choice } from '../query/query-edit.ts';

interface RowProps {
  name: string;
  title?: string;
  count: number | undefined;
  /** Counting stopped, so the count is a minimum. */
  more: boolean;
  choice: Choice | null;
  onChoose: (choice: Choice | null) => void;
}

/** A value of a facet: the checkbox includes it, the minus excludes it, and a second click undoes either. */
export function Row({ name, title = name, count, more, choice, onChoose }: RowProps) {
  return (
    <div className="group -mx-1 flex h-[22px] items-center gap-[6px] rounded-[3px] px-1 hover:bg-paper-2">
      <label className="flex min-w-0 flex-1 cursor-pointer items-center gap-[6px]" title={title}>
        <input
          type="checkbox"
          className="size-[13px] flex-none accent-[var(--accent)]"
          checked={choice === 'in'}
          onChange={() => onChoose(choice === 'in' ? null : 'in')}
        />
        <span className={`truncate ${choice === 'out' ? 'text-ink-3 line-through' : choice === 'in' ? 'strong' : 'text-ink-2'}`}>
          {name}
        </span>
      </label>
      <button
        type="button"
        aria-label={`Without ${name}`}
        aria-pressed={choice === 'out'}
        className={`h-[18px] w-[16px] flex-none rounded-[3px] text-ink-3 hover:text-bad focus-visible:opacity-100 group-hover:opacity-100 ${choice === 'out' ? 'text-bad' : 'opacity-0'}`}
        onClick={() => onChoose(choice === 'out' ? null : 'out')}
      >
        −
      </button>
      <span className="label num flex-none tabular-nums">
        {formatCount(count)}
        {more && count !== undefined && count > 0 ? '+' : ''}
      </span>
    </div>
  );
}
