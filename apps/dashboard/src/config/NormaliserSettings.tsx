import { ROLLOUT_SOURCES } from '@palestra/protocol';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { matchName, nameRegexProblem } from '@palestra/rollouts';
import { type FormEvent, type ReactNode, useDeferredValue, useState } from 'react';
import { changeRun, rolloutNamesQuery } from '../data/insights.ts';
import { UNKNOWN } from '../format/number.ts';
import { useRun } from '../run/context.ts';

type Draft = Record<string, string>;
const numbers = [
  ['n', 'Samples per prompt', 'Count'],
  ['batchSize', 'Prompts per step', 'Count'],
  ['maxTurns', 'Maximum turns of a rollout', 'Count'],
  ['successThreshold', 'Success threshold', 'Reward'],
  ['nonterminalReward', 'Reward added without a terminal state', 'Reward'],
  ['minReward', 'Minimum trained reward', 'Reward'],
  ['maxReward', 'Maximum trained reward', 'Reward'],
] as const;
const REDUCES = ['sum', 'last', 'max', 'mean', 'min'];
const SOURCES = ROLLOUT_SOURCES;

function Field({ label, children }: { label: string; children: ReactNode }) {
  return (
    <label className="grid grid-cols-[minmax(160px,1fr)_160px] items-center gap-3">
      <span className="text-ink-2">{label}</span>
      {children}
    </label>
  );
}

function Choice({ value, options, onChange }: { value: string; options: readonly string[]; onChange: (value: string) => void }) {
  return (
    <select className="input" value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">Detect</option>
      {options.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </select>
  );
}

/** What the regex extracts from the newest names, before it is saved. */
function Preview({ regex }: { regex: string }) {
  const { run } = useRun();
  const names = useQuery(rolloutNamesQuery(run.id));
  const problem = regex === '' ? null : nameRegexProblem(regex);
  if (problem !== null) return <p className="text-bad">{problem}</p>;
  if (regex === '' || !names.data) return null;
  return (
    <table className="mt-1 w-full">
      <caption className="label text-left">Matches in the newest names</caption>
      <thead>
        <tr className="label text-left">
          {['Name', 'Task', 'Step', 'Sample'].map((head) => (
            <th key={head} className="font-[450]">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {names.data.map((name) => {
          const found = matchName(regex, name);
          return (
            <tr key={name} className="border-b border-line">
              <td className="mono max-w-[280px] truncate" title={name}>
                {name}
              </td>
              {[found?.task, found?.step, found?.sample].map((part, i) => (
                <td key={i}>{part ?? UNKNOWN}</td>
              ))}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

const toDraft = (settings: Record<string, unknown>): Draft =>
  Object.fromEntries(
    Object.entries(settings)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => [name, String(value)]),
  );

function toSettings(draft: Draft): Record<string, unknown> {
  const entries = Object.entries(draft).filter(([, text]) => text.trim() !== '');
  const isNumber = (name: string) => numbers.some(([one]) => one === name);
  return Object.fromEntries(entries.map(([name, text]) => [name, isNumber(name) ? Number(text) : text.trim()]));
}

/** Settings of the owner that override what the normaliser detects. Saving them reprocesses all stored rollouts of the run. */
export function NormaliserSettings({ settings }: { settings: Record<string, unknown> }) {
  const { run } = useRun();
  const client = useQueryClient();
  const [draft, setDraft] = useState(() => toDraft(settings));
  const stored = JSON.stringify(settings);
  const [shown, setShown] = useState(stored);
  if (shown !== stored) {
    setShown(stored);
    setDraft(toDraft(settings));
  }
  const regex = useDeferredValue(draft['nameRegex'] ?? '');
  const save = useMutation({
    mutationFn: () => changeRun(run.id, { settings: toSettings(draft) }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['run'] }),
  });
  const set = (name: string) => (value: string) => {
    if (!save.isPending) save.reset();
    setDraft((old) => ({ ...old, [name]: value }));
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <section className="min-w-0 bg-paper-0 p-4">
      <h2 className="panel-title">Overrides</h2>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <div className="grid grid-cols-2 gap-x-8 gap-y-2 max-[1400px]:grid-cols-1">
          {numbers.map(([name, label, placeholder]) => (
            <Field key={name} label={label}>
              <input
                type="number"
                step="any"
                className="input num"
                placeholder={placeholder}
                value={draft[name] ?? ''}
                onChange={(event) => set(name)(event.target.value)}
              />
            </Field>
          ))}
          <Field label="Reduction to the trained reward">
            <Choice value={draft['rewardReduce'] ?? ''} options={REDUCES} onChange={set('rewardReduce')} />
          </Field>
          <Field label="Source">
            <Choice value={draft['source'] ?? ''} options={SOURCES} onChange={set('source')} />
          </Field>
        </div>
        <label className="flex flex-col gap-1">
          <span className="text-ink-2">Regex for rollout names (RE2) with the named groups task, step and sample</span>
          <input
            className="input mono"
            placeholder="-(?<task>\d+)-step(?<step>\d+)-r(?<sample>\d+)$"
            value={draft['nameRegex'] ?? ''}
            onChange={(event) => set('nameRegex')(event.target.value)}
          />
        </label>
        <Preview regex={regex} />
        <div className="flex items-center gap-3">
          <button type="submit" className="button primary" disabled={save.isPending}>
            Save and reprocess the run
          </button>
          <span role="status" className={save.error ? 'text-bad' : 'text-ink-2'}>
            {save.error ? save.error.message : save.isSuccess ? 'Saved. Figures update as rollouts are reprocessed.' : ''}
          </span>
        </div>
      </form>
    </section>
  );
}
