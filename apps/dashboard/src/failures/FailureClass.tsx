import type { FailureList } from '@palestra/protocol';

/** Each class has its own mark, because colours alone are not enough. */
const CLASSES = {
  policy: ['▲', 'text-policy', 'The policy caused it, for example by wrong arguments.'],
  environment: ['◆', 'text-environment', 'A tool or the setup of the environment failed.'],
  infrastructure: ['✕', 'text-infrastructure', 'A timeout, a lost session or a refused call. It never counts as a reward of 0.'],
} as const;

/** Whose failure it is. */
export function FailureClass({ of }: { of: FailureList['failures'][number]['class'] }) {
  const [mark, className, title] = CLASSES[of];
  return (
    <span className={`flex-none ${className}`} title={title}>
      <span aria-hidden="true">{mark} </span>
      {of}
    </span>
  );
}
