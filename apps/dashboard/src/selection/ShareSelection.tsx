import { useRun } from '../run/context.ts';
import { runPath } from '../run/address.ts';
import { Popover } from '../frame/Popover.tsx';
import { SharePanel } from '../frame/ShareButton.tsx';
import { type Chosen, queryOf } from './selection.ts';

/** Shares the selection as a query: its address for members, a link for other people. */
export function ShareSelection({ chosen }: { chosen: Chosen }) {
  const { org, run } = useRun();
  const q = queryOf(chosen);
  const address = q === null ? null : `${location.origin}${runPath(org, run.name)}/rollouts?${new URLSearchParams({ q }).toString()}`;
  return (
    <Popover label="Share the selection" button="Share ▾" align="end">
      {address === null ? (
        <p className="text-ink-2">A link can list at most 50 rollouts. Tag the selection, then share the query for that tag.</p>
      ) : (
        <div className="flex flex-col gap-2">
          <p className="label whitespace-normal">
            {chosen.kind === 'query'
              ? 'The link shows all rollouts that match the query, including later ones.'
              : 'The link shows these rollouts.'}
          </p>
          <SharePanel target={{ kind: 'query', run: run.id, q: q!, address }} />
        </div>
      )}
    </Popover>
  );
}
