import { useRun } from '../run/context.ts';
import { runPath } from '../run/address.ts';
import { CopyButton } from '../frame/CopyButton.tsx';
import { Popover } from '../frame/Popover.tsx';
import { type Chosen, queryOf } from './selection.ts';

/** The address of the selection as a query, for members of the organisation. */
export function ShareSelection({ chosen }: { chosen: Chosen }) {
  const { org, run } = useRun();
  const q = queryOf(chosen);
  const address = q === null ? null : `${location.origin}${runPath(org, run.name)}/rollouts?${new URLSearchParams({ q }).toString()}`;
  return (
    <Popover label="Share the selection" button="Share ▾" align="end">
      {address === null ? (
        <p className="text-ink-2">An address has at most 50 rollouts. Tag the selection, then share the query for the tag.</p>
      ) : (
        <div className="flex flex-col gap-2">
          <h3 className="strong">For members of the organisation</h3>
          <span className="flex items-center gap-2">
            <input
              className="input mono min-w-0 flex-1"
              readOnly
              aria-label="Address of the selection"
              value={address}
              onFocus={(event) => event.target.select()}
            />
            <CopyButton text={address} />
          </span>
          <p className="label whitespace-normal">
            {chosen.kind === 'query' ? 'It shows all rollouts that match the query, also later ones.' : 'It shows these rollouts.'}
          </p>
        </div>
      )}
    </Popover>
  );
}
