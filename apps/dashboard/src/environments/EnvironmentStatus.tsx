import type { EnvironmentView } from '@palestra/protocol';

const marks: Record<EnvironmentView['status'], [mark: string, className: string]> = {
  ready: ['●', 'text-good'],
  starting: ['◐', 'text-policy'],
  unreachable: ['✕', 'text-infrastructure'],
  unlinked: ['○', 'text-ink-3'],
};

export function EnvironmentStatus({ environment }: { environment: EnvironmentView }) {
  const [mark, className] = marks[environment.status];
  return (
    <span className={className} title={environment.status_detail ?? undefined}>
      <span aria-hidden="true">{mark}</span> {environment.status}
    </span>
  );
}
