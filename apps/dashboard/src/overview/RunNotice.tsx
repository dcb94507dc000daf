import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useRun } from '../run/context.ts';

const styles = {
  warning: { mark: '▲', word: 'Warning', className: 'bg-bad-wash', markClass: 'text-bad' },
  hint: { mark: '○', word: 'Hint', className: '', markClass: 'text-ink-3' },
} as const;

interface Props {
  level: keyof typeof styles;
  text: ReactNode;
  /** A link before the one to the rollouts. */
  action?: ReactNode;
  /** Query of the rollouts that show it; null if no query finds them. */
  q: string | null;
  /** What kind of notice it is; hidden on a phone. */
  kind: ReactNode;
  kindTitle?: string | undefined;
}

/** A line of the list of firing alerts, or of advisories, with a link to its rollouts. */
export function RunNotice({ level, text, action, q, kind, kindTitle }: Props) {
  const { org, run, filter } = useRun();
  const { mark, word, className, markClass } = styles[level];
  return (
    <li className={`flex min-h-[28px] items-center gap-x-[10px] border-b border-line px-3 py-[3px] max-[700px]:flex-wrap ${className}`}>
      <span className={markClass} aria-hidden="true">
        {mark}
      </span>
      <span className="sr-only">{word}:</span>
      <span className="min-w-0 max-[700px]:basis-[calc(100%-40px)]">{text}</span>
      {action}
      {q !== null && (
        <Link to="/$org/runs/$run/rollouts" params={{ org, run: run.name }} search={{ ...filter, q }} className="link flex-none" title={q}>
          Show the rollouts
        </Link>
      )}
      <span className="label ml-auto flex-none text-ink-2 max-[700px]:hidden" title={kindTitle}>
        {kind}
      </span>
    </li>
  );
}
