import { Link } from '@tanstack/react-router';
import type { Advisory } from '../data/run-queries.ts';
import { RunNotice } from './RunNotice.tsx';

/** Advisories of the run with links to their rollouts. Renders nothing if there are none. */
export function Advisories({ advisories }: { advisories: readonly Advisory[] }) {
  if (advisories.length === 0) return null;
  return (
    <ul aria-label="Advisories">
      {advisories.map(({ rule, level, text, threshold, q, step }) => (
        <RunNotice
          key={`${rule} ${step}`}
          level={level}
          text={text}
          action={
            step !== undefined && (
              <Link to="." search={(old: object) => ({ ...old, why: step }) as never} className="link flex-none">
                Why did step {step} move?
              </Link>
            )
          }
          q={q}
          kind={rule.replaceAll('_', ' ')}
          kindTitle={threshold === null ? undefined : `Shown from ${threshold}`}
        />
      ))}
    </ul>
  );
}
