import type { RolloutHeader } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import type { FromList } from '../data/list-order.ts';
import { besideQuery } from '../data/rollout.ts';
import { formatCount } from '../format/number.ts';
import { WithProvenance } from '../frame/Provenance.tsx';

/** Opens a rollout; without one it shows the message. */
type OpenRollout = (to: { id: string } | null, missingMessage: string) => void;

interface StepProps {
  to: { id: string } | null;
  hotkey: string;
  label: string;
  open: OpenRollout;
}
function StepButton({ to, hotkey, label, open }: StepProps) {
  return (
    <button
      type="button"
      className="button px-[6px]"
      disabled={!to}
      onClick={() => open(to, '')}
      aria-keyshortcuts={hotkey}
      aria-label={label}
      title={`${label} (${hotkey})`}
    >
      <kbd>{hotkey}</kbd>
    </button>
  );
}

/** `‹ list ›`: the previous and next rollout of the list from which this one was opened. */
export function ListSteps({ id, from, open }: { id: string; from: FromList; open: OpenRollout }) {
  const neighbours = useQuery(besideQuery(id, from)).data;
  const order =
    from.sort === undefined ? 'Newest first' : `By ${from.sort.replace(/^-(.*)$/, '$1, descending').replace('created_at', 'time')}`;
  return (
    <span className="flex items-center gap-1 max-[760px]:hidden" role="group" aria-label="List from which the rollout was opened">
      <StepButton to={neighbours?.previous ?? null} hotkey="p" label="Previous rollout of the list" open={open} />
      <span className="label whitespace-nowrap px-1" title={`${from.q ?? 'All rollouts of the run'}\n${order}`}>
        List
      </span>
      <StepButton to={neighbours?.next ?? null} hotkey="n" label="Next rollout of the list" open={open} />
    </span>
  );
}

/** `‹ sample 3 of 4 › ‹ step 59 ›`. */
export function GroupSteps({ header, size, open }: { header: RolloutHeader; size: number | undefined; open: OpenRollout }) {
  const { previous_sample, next_sample, previous_step, next_step } = header.neighbours;
  return (
    <>
      <span className="flex items-center gap-1" role="group" aria-label="Samples of the group">
        <StepButton to={previous_sample} hotkey="[" label="Previous sample" open={open} />
        <span className="label whitespace-nowrap px-1 max-[560px]:hidden">
          Sample{' '}
          <WithProvenance provenance={header.provenance['sample']} rule={header.rules['sample']}>
            {header.sample ?? '–'}
          </WithProvenance>
          {size !== undefined && ` of ${formatCount(size)}`}
        </span>
        <StepButton to={next_sample} hotkey="]" label="Next sample" open={open} />
      </span>
      <span className="flex items-center gap-1 max-[1000px]:hidden" role="group" aria-label="Same task at other steps">
        <StepButton to={previous_step} hotkey="{" label="Same task, previous step" open={open} />
        <span className="label whitespace-nowrap px-1">
          Step{' '}
          <WithProvenance provenance={header.provenance['step']} rule={header.rules['step']}>
            {header.step ?? '–'}
          </WithProvenance>
        </span>
        <StepButton to={next_step} hotkey="}" label="Same task, next step" open={open} />
      </span>
    </>
  );
}
