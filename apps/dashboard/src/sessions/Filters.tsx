import { type ReactNode, type RefObject, useRef } from 'react';
import { ENDED_SESSION_STATES, FAILURE_CLASSES, SESSION_STATES, type SessionState } from '@palestra/protocol';
import { useKeys } from '../frame/keyboard.ts';

export interface SessionSearch {
  tab?: 'ended' | 'slots' | undefined;
  state?: string | undefined;
  environment?: string | undefined;
  run?: string | undefined;
  key?: string | undefined;
  failure?: string | undefined;
}

const endedStates: readonly SessionState[] = ENDED_SESSION_STATES;
const liveStates = SESSION_STATES.filter((state) => !endedStates.includes(state));

interface Change {
  set: (change: Partial<SessionSearch>) => void;
}

/** Only whole names match, so the filter applies after Enter or when the field loses the focus. */
function NameFilter({
  name,
  value,
  label,
  placeholder,
  set,
  ref,
}: Change & {
  name: 'environment' | 'run';
  value: string | undefined;
  label: string;
  placeholder: string;
  ref?: RefObject<HTMLInputElement | null>;
}) {
  const commit = (text: string) => set({ [name]: text.trim() || undefined });
  return (
    <input
      key={value ?? ''}
      ref={ref}
      type="search"
      className="input w-[170px]"
      aria-label={label}
      placeholder={placeholder}
      defaultValue={value}
      onBlur={(event) => event.target.value !== (value ?? '') && commit(event.target.value)}
      onKeyDown={(event) => event.key === 'Enter' && commit(event.currentTarget.value)}
    />
  );
}

function ChoiceFilter({
  name,
  value,
  any,
  choices,
  set,
}: Change & { name: 'state' | 'failure'; value: string | undefined; any: string; choices: readonly string[] }) {
  return (
    <select
      className="input"
      aria-label={`Only this ${name}`}
      value={value ?? ''}
      onChange={(event) => set({ [name]: event.target.value || undefined })}
    >
      <option value="">{any}</option>
      {choices.map((choice) => (
        <option key={choice} value={choice}>
          {choice}
        </option>
      ))}
    </select>
  );
}

/** The filters of the list. The address has all of them. */
export function Filters({ search, ended, set }: Change & { search: SessionSearch; ended: boolean }): ReactNode {
  const first = useRef<HTMLInputElement>(null);
  useKeys({ '/': () => first.current?.focus() });
  return (
    <div className="ml-auto flex flex-wrap items-center gap-2 px-3 py-[3px] max-[760px]:ml-0">
      {search.key && (
        <button type="button" className="button" onClick={() => set({ key: undefined })}>
          One key only ✕<span className="sr-only">: show all keys</span>
        </button>
      )}
      <NameFilter
        ref={first}
        name="environment"
        value={search.environment}
        label="Environment, as owner/name"
        placeholder="owner/environment  /"
        set={set}
      />
      <NameFilter name="run" value={search.run} label="Run to which the sessions are recorded" placeholder="Run" set={set} />
      <ChoiceFilter name="state" value={search.state} any="Any state" choices={ended ? endedStates : liveStates} set={set} />
      {ended && <ChoiceFilter name="failure" value={search.failure} any="Any failure" choices={FAILURE_CLASSES} set={set} />}
    </div>
  );
}
