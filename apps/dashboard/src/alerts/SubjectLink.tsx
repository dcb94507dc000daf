import type { AlertEvent } from '@palestra/protocol';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

interface Props {
  /** Of the reader, for the address of a run. */
  org: string;
  subject: Pick<AlertEvent, 'run' | 'environment'>;
  className?: string;
  /** Default: the name. */
  children?: ReactNode;
}

/** The run in which an alert fires, or the hosted environment, with its instances. */
export function SubjectLink({ org, subject: { run, environment }, className = 'link', children }: Props) {
  if (run !== null)
    return (
      <Link to="/$org/runs/$run" params={{ org, run: run.name }} search={{}} className={className}>
        {children ?? run.name}
      </Link>
    );
  const [owner = '', name = ''] = (environment ?? '').split('/');
  return (
    <Link to="/environments/$owner/$name" params={{ owner, name }} search={{ tab: 'instances' }} className={className}>
      {children ?? environment}
    </Link>
  );
}
