import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { runsQuery } from '../data/queries.ts';
import { formatReward, plural } from '../format/number.ts';
import { Loaded } from '../frame/Loaded.tsx';
import { refOf } from '../run/address.ts';

/** Runs to add to the comparison. */
export function RunChooser({ chosen }: { chosen: readonly string[] }) {
  const navigate = useNavigate();
  const [text, setText] = useState('');
  const runs = useQuery(runsQuery(text));
  const add = (ref: string) =>
    void navigate({
      to: '/compare',
      search: (old: object) => ({ ...old, rollouts: undefined, runs: [...chosen, ref].join(',') }) as never,
    });
  return (
    <div className="flex max-w-[640px] flex-col gap-2 p-4">
      <h2 className="strong">{chosen.length === 0 ? 'Choose runs to compare' : `Choose a run to compare with ${chosen.join(', ')}`}</h2>
      <p className="text-ink-2">Two to four runs. The first one is the reference.</p>
      <input
        type="search"
        className="input"
        aria-label="Find a run by name"
        placeholder="Find a run"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <Loaded query={runs}>
        {({ runs: found }) => (
          <ul aria-label="Runs">
            {found
              .filter(({ id, name }) => !chosen.includes(name) && !chosen.includes(id))
              .map((run) => (
                <li key={run.id}>
                  <button
                    type="button"
                    data-row
                    className="row hover w-full grid-cols-[minmax(0,1fr)_100px_90px] px-2 text-left"
                    onClick={() => add(refOf(run))}
                  >
                    <span className="cell">{run.name}</span>
                    <span className="num text-ink-3">{plural(run.num_rollouts, 'rollout')}</span>
                    <span className="num">{formatReward(run.avg_rollout_reward)}</span>
                  </button>
                </li>
              ))}
            {found.length === 0 && <li className="text-ink-3">No run name contains this text.</li>}
          </ul>
        )}
      </Loaded>
    </div>
  );
}
