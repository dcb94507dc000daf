import type { RunTask } from '@palestra/protocol';
import { useQueries, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type TaskGroup, taskGroupQuery } from '../data/insights.ts';
import { formatReward, plural, UNKNOWN } from '../format/number.ts';
import { Loaded } from '../frame/Loaded.tsx';
import { RewardDot } from '../frame/Reward.tsx';
import { Stop } from '../frame/Stop.tsx';
import { useRun } from '../run/context.ts';
import { RunStep } from '../run/Step.tsx';

const MOST_STEPS = 4;

/** The steps in the address, else the first and the last step with rollouts of the task. */
function chosenSteps(at: string | undefined, groups: readonly TaskGroup[]): number[] {
  const known = groups.map(({ step }) => step).filter((step) => step !== null);
  const requested = [...new Set((at ?? '').split(',').map(Number))];
  const chosen = at === undefined ? [] : requested.filter((step) => known.includes(step)).slice(0, MOST_STEPS);
  if (chosen.length > 0) return chosen;
  return [...new Set([known.at(-1), known[0]])].filter((step) => step !== undefined);
}

/** The smallest successful reward: successes are the highest rewards of a group. */
function successLine(rollouts: readonly { reward: number | null }[], successes: number): number {
  const rewards = rollouts.map(({ reward }) => reward).filter((reward) => reward !== null);
  return rewards.toSorted((a, b) => b - a)[successes - 1] ?? Infinity;
}

function Samples({ group }: { group: TaskGroup }) {
  const { run, org, filter } = useRun();
  const members = useQuery(taskGroupQuery(run.id, group));
  return (
    <section className="min-w-[260px] flex-1 border-r border-line p-4" aria-label={`Step ${group.step ?? UNKNOWN}`}>
      <h2 className="panel-title">
        <Link
          to="/$org/runs/$run/groups/$group"
          params={{ org, run: run.name, group: group.key }}
          search={{ ...filter, ...(group.step !== null && { at: group.step }) }}
          className="link"
        >
          Step <RunStep step={group.step} />
        </Link>
        <span className="label">
          Mean {formatReward(group.mean)} · {group.successes}/{group.scored} solved{group.zero_variance && ` · ${group.zero_variance}`}
        </span>
      </h2>
      <Loaded query={members}>
        {({ rollouts }) => {
          const line = successLine(rollouts, group.successes);
          return (
            <ul>
              {rollouts.map((rollout) => (
                <li key={rollout.id}>
                  <Link
                    to="/rollout/$id"
                    params={{ id: rollout.id }}
                    search={{}}
                    data-row
                    className="row grid-cols-[36px_16px_56px_56px_minmax(0,1fr)] px-1"
                  >
                    <span className="num text-ink-3">#{rollout.sample ?? UNKNOWN}</span>
                    <span className="grid place-items-center">
                      <RewardDot reward={rollout.reward} solved={(reward) => reward >= line} />
                    </span>
                    <span className="num">{formatReward(rollout.reward)}</span>
                    <span className="num text-ink-3">{plural(rollout.turns, 'turn')}</span>
                    <span className="cell">
                      <Stop stop={rollout.stop} />
                    </span>
                  </Link>
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
    </section>
  );
}

/** The rollouts of the task at the steps in the address, else at its last and first visit. */
export function SideBySide({ task }: { task: RunTask }) {
  const { run } = useRun();
  const { at } = useSearch({ from: '/$org/runs/$run/tasks/$task' });
  const navigate = useNavigate();
  const chosen = chosenSteps(at, task.groups);
  const steps = [...new Set(task.groups.map(({ step }) => step).filter((step) => step !== null))].toSorted((a, b) => a - b);
  const choose = (step: number) => {
    const next = chosen.includes(step) ? chosen.filter((one) => one !== step) : [...chosen.slice(-(MOST_STEPS - 1)), step];
    void navigate({
      to: '.',
      search: (old: object) => ({ ...old, at: next.toSorted((a, b) => a - b).join(',') || undefined }) as never,
      replace: true,
    });
  };
  const slide = (step: number) =>
    void navigate({ to: '.', search: (old: object) => ({ ...old, at: [chosen[0], step].join(',') }) as never, replace: true });
  const last = steps.at(-1) ?? 0;
  const scrubbed = chosen.at(-1) ?? last;
  const shown = chosen.map((step) => task.groups.find((group) => group.step === step)).filter((group) => group !== undefined);
  useQueries({ queries: shown.map((group) => taskGroupQuery(run.id, group)) });
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <div className="border-b border-line px-4 py-2">
        <label className="mt-2 flex items-center gap-3">
          <span className="label flex-none">Last step</span>
          <input
            type="range"
            className="flex-1 accent-accent"
            min={0}
            max={Math.max(0, steps.length - 1)}
            value={Math.max(0, steps.indexOf(scrubbed))}
            aria-valuetext={`step ${scrubbed}`}
            onChange={(event) => slide(steps[Number(event.target.value)]!)}
          />
          <span className="num w-[48px]">{scrubbed}</span>
        </label>
        <div role="group" aria-label="Steps side by side" className="mt-2 flex max-h-[58px] flex-wrap gap-1 overflow-y-auto">
          {steps.map((step) => (
            <button
              key={step}
              type="button"
              className="chip aria-pressed:bg-accent-wash aria-pressed:text-accent"
              aria-pressed={chosen.includes(step)}
              onClick={() => choose(step)}
            >
              {step}
            </button>
          ))}
        </div>
      </div>
      <div className="flex flex-wrap">
        {shown.map((group) => (
          <Samples key={`${group.key} ${group.step}`} group={group} />
        ))}
      </div>
    </div>
  );
}
