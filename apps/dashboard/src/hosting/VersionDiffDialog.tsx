import { useQuery } from '@tanstack/react-query';
import type { VersionDiff } from '@palestra/protocol';
import type { ReactNode } from 'react';
import { type EnvironmentName, versionDiffQuery } from '../data/hosting/hosting.ts';
import { formatReward, plural } from '../format/number.ts';
import { Dialog } from '../frame/Dialog.tsx';
import { SkeletonRows } from '../frame/states.tsx';
import { TextDiff } from '../rollout/TextDiff.tsx';

interface Props {
  environment: EnvironmentName;
  numbers: readonly number[];
  from: number;
  to: number;
  onChange: (pair: { from?: number; to?: number }) => void;
  onClose: () => void;
}

/** What a version changes for clients of another one: tools, tasks, and the prompt and rewards of a fixed episode. */
export function VersionDiffDialog({ environment, numbers, from, to, onChange, onClose }: Props) {
  const diff = useQuery({ ...versionDiffQuery(environment, from, to), retry: false });
  const choice = (label: string, value: number, change: (number: number) => void) => (
    <label className="flex items-center gap-2">
      <span className="text-ink-3">{label}</span>
      <select className="input" value={value} onChange={(event) => change(Number(event.target.value))}>
        {numbers.map((number) => (
          <option key={number} value={number}>
            Version {number}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <Dialog title="Compare versions" open onClose={onClose} width={760}>
      <div className="flex flex-col gap-4">
        <div className="flex flex-wrap gap-3">
          {choice('From', from, (number) => onChange({ from: number }))}
          {choice('to', to, (number) => onChange({ to: number }))}
        </div>
        {diff.error ? <p className="text-bad">{diff.error.message}</p> : diff.data ? <Diff diff={diff.data} /> : <SkeletonRows count={4} />}
      </div>
    </Dialog>
  );
}

function Diff({ diff }: { diff: VersionDiff }) {
  const { tools, tasks, prompt, rewards } = diff;
  if (diff.from === diff.to) return <p className="text-ink-3">Choose two different versions.</p>;
  return (
    <>
      <BreakingChanges diff={diff} />
      <Part title="Tools" changes={tools} />
      <Part title="Tasks" changes={tasks} />
      <Section title="Prompt of a fixed task">
        {prompt === null ? <p className="text-ink-3">No change.</p> : <TextDiff a={prompt.from} b={prompt.to} />}
      </Section>
      <Section title="Rewards of a fixed episode">
        {rewards === null ? (
          <p className="text-ink-3">No change.</p>
        ) : (
          <dl className="grid grid-cols-[90px_minmax(0,1fr)] gap-x-3">
            <dt className="text-ink-3">Version {diff.from}</dt>
            <dd className="tabular-nums">{rewards.from.map((reward) => formatReward(reward)).join(', ') || 'No calls'}</dd>
            <dt className="text-ink-3">Version {diff.to}</dt>
            <dd className="tabular-nums">{rewards.to.map((reward) => formatReward(reward)).join(', ') || 'No calls'}</dd>
          </dl>
        )}
      </Section>
    </>
  );
}

/** Names what fails for clients that were written for the version before. */
export function BreakingChanges({ diff: { breaking, from } }: { diff: VersionDiff }) {
  if (breaking.length === 0) return <p className="text-ink-2">Nothing breaks clients of version {from}.</p>;
  return (
    <section aria-label="Breaking changes" className="rounded-[4px] bg-bad-wash px-3 py-2">
      <h3 className="strong">
        <span aria-hidden="true">▲ </span>
        {plural(breaking.length, 'breaking change')} for clients of version {from}
      </h3>
      <ul className="list-disc pl-5">
        {breaking.map((text) => (
          <li key={text} className="[overflow-wrap:anywhere]">
            {text}
          </li>
        ))}
      </ul>
    </section>
  );
}

const marks = { added: ['+', 'text-good'], removed: ['−', 'text-bad'], changed: ['~', 'text-policy'] } as const;

function Part({ title, changes }: { title: string; changes: VersionDiff['tools'] }) {
  return (
    <Section title={title}>
      {changes.length === 0 ? (
        <p className="text-ink-3">No change.</p>
      ) : (
        <ul>
          {changes.map(({ name, change, detail }) => (
            <li key={name} className="grid grid-cols-[14px_70px_minmax(0,1fr)] gap-x-2 py-[2px]">
              <span aria-hidden="true" className={marks[change][1]}>
                {marks[change][0]}
              </span>
              <span className="text-ink-3">{change}</span>
              <span className="[overflow-wrap:anywhere]">
                <code>{name}</code>
                {detail && <span className="text-ink-2"> {detail}</span>}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <h3 className="mb-1 strong">{title}</h3>
      {children}
    </section>
  );
}
