import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { printText } from '@palestra/query';
import { environmentRunsQuery } from '../data/environments.ts';
import { meQuery } from '../data/queries.ts';
import { formatCount, formatReward, formatShare, plural } from '../format/number.ts';
import { CopyButton } from '../frame/CopyButton.tsx';
import { useKeys } from '../frame/keyboard.ts';
import { PlainText } from '../text/PlainText.tsx';
import type { Difficulty } from './difficulty.ts';
import { type SplitAddress, useTask } from './split.ts';

interface PanelProps {
  address: SplitAddress;
  index: number;
  difficulty: Difficulty | null;
  onClose: () => void;
}
const SHOWN_RUNS = 20;

/** One task: its specification, its difficulty, and links to its rollouts. */
export function TaskPanel({ address, index, difficulty, onClose }: PanelProps) {
  const { page, task } = useTask(address, index);
  useKeys({ Escape: onClose });
  const text = task === undefined ? '' : (JSON.stringify(task.task_spec, null, 2) ?? '');
  return (
    <aside
      aria-label={`Task ${address.split} ${index}`}
      className="flex min-h-0 w-[380px] flex-none flex-col overflow-y-auto border-l border-line max-[900px]:w-full max-[900px]:flex-1 max-[900px]:border-l-0 max-[900px]:border-t min-[1700px]:w-[520px]"
    >
      <h2 className="flex items-center gap-2 border-b border-line px-3 py-[6px] strong">
        {address.split} {formatCount(index)}
        <span className="flex-1" />
        <Link
          to="/environments/$owner/$name/play"
          params={{ owner: address.owner, name: address.name }}
          search={{ variant: address.variant, split: address.split, task: index }}
          className="button"
        >
          Play
        </Link>
        <button type="button" className="button" onClick={onClose} aria-label="Close the task">
          Close
        </button>
      </h2>
      <div className="border-b border-line px-3 py-2 text-[12px]">
        {difficulty === null ? (
          <p className="text-ink-3">Your organisation has no scored rollouts of this task yet.</p>
        ) : (
          <p>
            Mean reward <span className="strong tabular-nums">{formatReward(difficulty.avg)}</span>, {formatReward(difficulty.min)} to{' '}
            {formatReward(difficulty.max)} · solved {formatShare(difficulty.solved, difficulty.n)} of {plural(difficulty.n, 'rollout')}
          </p>
        )}
        <Rollouts address={address} index={index} />
      </div>
      <div className="flex items-center gap-2 px-3 pt-2">
        <span className="label">Specification</span>
        <span className="flex-1" />
        {text !== '' && <CopyButton text={text} />}
      </div>
      <pre className="mono m-3 mt-1 min-w-0 whitespace-pre-wrap [overflow-wrap:anywhere]">
        {page.error ? page.error.message : <PlainText text={text.slice(0, 100_000)} />}
      </pre>
    </aside>
  );
}

/** Links to the rollouts of the task in each run that used the environment. */
function Rollouts({ address: { owner, name, split }, index }: Pick<PanelProps, 'address' | 'index'>) {
  const runs = useQuery(environmentRunsQuery(owner, name));
  const me = useQuery(meQuery);
  const org = me.data?.org.name;
  if (!runs.data || org === undefined || runs.data.runs.length === 0) return null;
  const q = `env:${printText(`${owner}/${name}`)} split:${printText(split)} task:${index}`;
  return (
    <div className="mt-1">
      <span className="label">Rollouts in</span>
      <ul>
        {runs.data.runs.slice(0, SHOWN_RUNS).map((run) => (
          <li key={run.id} className="truncate">
            <Link to="/$org/runs/$run/rollouts" params={{ org, run: run.name }} search={{ q }} className="link" title={run.name}>
              {run.name}
            </Link>
          </li>
        ))}
      </ul>
      {runs.data.runs.length > SHOWN_RUNS && <p className="label">And {plural(runs.data.runs.length - SHOWN_RUNS, 'older run')}</p>}
    </div>
  );
}
