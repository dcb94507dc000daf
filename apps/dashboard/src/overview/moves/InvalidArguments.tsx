import type { RunMove, ToolCheck } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { toolCheckQuery } from '../../data/insights.ts';
import { formatCount } from '../../format/number.ts';
import { useRun } from '../../run/context.ts';

/** Newest calls that are validated, at the step and before it. */
const CHECKED_CALLS = 200;

/** Calls of a tool at a step and before it whose arguments do not match the published schema. Renders nothing without a schema. */
export function InvalidArguments({ tool, step, baseline }: { tool: string; step: number; baseline: RunMove['baseline'] }) {
  const { run, filter } = useRun();
  const now = useQuery(toolCheckQuery(run.id, tool, { ...filter, steps: String(step) }, CHECKED_CALLS)).data;
  const before = useQuery(toolCheckQuery(run.id, tool, { ...filter, steps: `${baseline.from}..${baseline.to}` }, CHECKED_CALLS)).data;
  if (!now || !before || now.checked === 0 || (now.invalid === 0 && before.invalid === 0)) return null;
  const count = ({ invalid, checked }: ToolCheck) => `${formatCount(invalid)} of ${formatCount(checked)}`;
  const first = now.violations[0];
  const example = first?.examples[0];
  return (
    <p className="mt-2 text-ink-2">
      <span className="mono">{tool}</span> was called with invalid arguments in {count(now)} checked calls; {count(before)} before.
      {first && (
        <>
          {' '}
          Most often: <span className="mono">{first.path}</span> {first.message}.{' '}
        </>
      )}
      {example && (
        <Link to="/rollout/$id" params={{ id: example.rollout }} search={{}} hash={`m-${example.index}`} className="link underline">
          Open an invalid call
        </Link>
      )}
    </p>
  );
}
