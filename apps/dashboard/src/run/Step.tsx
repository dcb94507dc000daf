import type { RunView } from '@palestra/protocol';
import { UNKNOWN } from '../format/number.ts';
import { WithProvenance } from '../frame/Provenance.tsx';
import { useRun } from './context.ts';

/** Whether some steps of the run are inferred. Pages then mark all steps of the run as inferred. */
export const hasInferredSteps = ({ inference }: Pick<RunView, 'inference'>): boolean => Number(inference?.['rollouts'] ?? 0) > 0;

/** A step of the run with the provenance of the steps. */
export function RunStep({ step }: { step: number | null }) {
  const { run } = useRun();
  const confidence = run.inference?.['confidence'];
  if (step === null) return <span className="text-ink-3">{UNKNOWN}</span>;
  return (
    <WithProvenance
      provenance={hasInferredSteps(run) ? 'inferred' : 'reported'}
      confidence={typeof confidence === 'number' ? confidence : null}
    >
      {step}
    </WithProvenance>
  );
}
