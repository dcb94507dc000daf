import { Link } from '@tanstack/react-router';
import type { Advisory } from '../data/run-queries.ts';
import { useRun } from '../run/context.ts';

const styles = {
  warning: { mark: '▲', word: 'Warning', className: 'bg-bad-wash', markClass: 'text-bad' },
  hint: { mark: '○', word: 'Hint', className: '', markClass: 'text-ink-3' },
} as const;

/** Advisories of the run with links to their rollouts. Renders nothing if there are none. */
export function Advisories({ advisories }: { advisories: readonly Advisory[] }) {
  const { org, run, filter } = useRun();
  if (advisories.length === 0) return null;
  return (
    <ul aria-label="Advisories">
      {advisories.map(({ rule, level, text, threshold, q, step }) => {
        const { mark, word, className, markClass } = styles[level];
        return (
          <li
            key={`${rule} ${step}`}
            className={`flex min-h-[28px] items-center gap-x-[10px] max-[700px]:flex-wrap border-b border-line px-3 py-[3px] ${className}`}
          >
            <span className={markClass} aria-hidden="true">
              {mark}
            </span>
            <span className="sr-only">{word}:</span>
            <span className="min-w-0 max-[700px]:basis-[calc(100%-40px)]">{text}</span>
            {step !== undefined && (
              <Link to="." search={(old: object) => ({ ...old, why: step }) as never} className="link flex-none">
                Why did step {step} move?
              </Link>
            )}
            {q !== null && (
              <Link
                to="/$org/runs/$run/rollouts"
                params={{ org, run: run.name }}
                search={{ ...filter, q }}
                className="link flex-none"
                title={q}
              >
                Show the rollouts
              </Link>
            )}
            <span
              className="label ml-auto flex-none text-ink-2 max-[700px]:hidden"
              title={threshold === null ? undefined : `Shown from ${threshold}`}
            >
              {rule.replaceAll('_', ' ')}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
