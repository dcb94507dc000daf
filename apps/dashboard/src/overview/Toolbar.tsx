import type { KnownPhase, RunSummary } from '@palestra/protocol';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useEffect, useRef } from 'react';
import { CHART_X, type ChartX, type RunFilter } from '../data/run-queries.ts';
import { plural } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import { Menu, MenuChoice } from '../frame/Menu.tsx';
import { useRun } from '../run/context.ts';
import { readFilter } from '../run/filter.ts';

const xNames: Record<ChartX, [string, string]> = {
  step: ['Step', ''],
  time: ['Time', 'when the first rollout of a step arrived'],
  count: ['Rollouts', 'so far'],
};
const phaseNames = { train: 'Training', eval: 'Evaluation', unknown: 'Unknown phase' } as const;

/** The filter of the run and the horizontal axis; both are in the address. */
export function Toolbar({ x, axisName, summary }: { x: ChartX; axisName: string; summary: RunSummary | undefined }) {
  const { run, filter, setFilter } = useRun();
  const navigate = useNavigate();
  const phase = filter.phase ?? 'all';
  return (
    <div className="flex min-h-[40px] flex-wrap items-center gap-2 border-b border-line px-3 py-[5px]">
      {(filter.steps !== undefined || !summary?.windows) && <StepsInput steps={filter.steps} onChange={(steps) => setFilter({ steps })} />}
      {run.environments.length > 1 && (
        <Menu label="Environment" align="start" button={<>{filter.env ?? 'All environments'} ▾</>}>
          <MenuChoice
            title="Rollouts of"
            value={filter.env ?? ''}
            options={[{ value: '', label: 'All environments' }, ...run.environments.map((env) => ({ value: env, label: env }))]}
            onChange={(env) => setFilter({ env: env || undefined })}
          />
        </Menu>
      )}
      <Menu
        label="Phase"
        align="start"
        button={<>{filter.phase ? phaseNames[filter.phase] : `${phaseNames[summary?.phase ?? 'train']} (most)`} ▾</>}
      >
        <MenuChoice
          title="Phase of the rollouts"
          value={phase}
          options={[
            { value: 'all', label: 'The phase with the most rollouts' },
            { value: 'train', label: phaseNames.train },
            { value: 'eval', label: phaseNames.eval },
          ]}
          onChange={(chosen) => setFilter({ phase: chosen === 'all' ? undefined : (chosen as KnownPhase) })}
        />
      </Menu>
      <Menu label="Horizontal axis" align="start" button={<>By {axisName} ▾</>}>
        <MenuChoice
          title="Charts over"
          value={x}
          options={CHART_X.map((value) => ({ value, label: xNames[value][0], hint: xNames[value][1] }))}
          onChange={(chosen) =>
            void navigate({
              to: '.',
              search: (old: object) => ({ ...old, x: chosen === 'step' ? undefined : chosen }) as never,
              replace: true,
            })
          }
        />
      </Menu>
      {summary && <FilterSummary summary={summary} />}
    </div>
  );
}

/** The number of rollouts and steps in the figures, and their age. */
function FilterSummary({ summary }: { summary: RunSummary }) {
  const { steps, rollouts, lag_ms: lag, incomplete } = summary;
  return (
    <span className="label ml-auto">
      {plural(rollouts, 'rollout')}
      {steps.count > 0 && ` of ${plural(steps.count, 'step')}`}
      {lag !== null && ` · newest event ${formatDuration(lag)} ago`}
      {incomplete && ' · some figures are still being computed'}
    </span>
  );
}

/** The range of steps, typed or set by a brush; a chip clears it. */
function StepsInput({ steps, onChange }: { steps: string | undefined; onChange: (steps: RunFilter['steps']) => void }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (input.current) input.current.value = steps ?? '';
  }, [steps]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const typed = input.current?.value.trim().replace(/\s*(?:-|–|to)\s*/, '..');
    const parsed = readFilter({ steps: typed }).steps;
    if (parsed !== undefined || !typed) onChange(parsed);
    else if (input.current) input.current.value = steps ?? '';
  };
  return (
    <form onSubmit={submit} className="flex items-center gap-1" role="search" aria-label="Steps">
      <label className="label" htmlFor="steps">
        Steps
      </label>
      <input
        id="steps"
        ref={input}
        className="input w-[92px] tabular-nums"
        placeholder="All"
        title="Enter 40..80, 40.. or 40, or drag over a chart"
        defaultValue={steps}
        onBlur={(event) => event.currentTarget.form?.requestSubmit()}
      />
      {steps !== undefined && (
        <button
          type="button"
          className="chip hover:text-ink-1"
          aria-label={`Clear the range of steps ${steps}`}
          onClick={() => onChange(undefined)}
        >
          Steps {steps} <span aria-hidden="true">×</span>
        </button>
      )}
    </form>
  );
}
