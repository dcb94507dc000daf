import { useQuery } from '@tanstack/react-query';
import type { SessionCallView, SessionView, ToolsAnswer } from '@palestra/protocol';
import { type ReactNode, useState } from 'react';
import { stateQuery } from '../data/playground.ts';
import { environmentQuery } from '../data/queries.ts';
import { formatCount, formatReward } from '../format/number.ts';
import { Age } from '../frame/Age.tsx';
import { holderName, holderText } from '../sessions/names.ts';
import { SessionState } from '../sessions/SessionState.tsx';
import { JsonTree } from '../text/JsonTree.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { store, stored } from '../theme/stored.ts';

interface ObserverProps {
  environment: { owner: string; name: string };
  session: SessionView;
  calls: readonly SessionCallView[];
  tools: ToolsAnswer | undefined;
  task: string;
}

const STORAGE_KEY = 'palestra-observer';

/** Live details of the episode, also if another client plays it. */
export function Observer({ environment, session, calls, tools, task }: ObserverProps) {
  const [open, setOpen] = useState(() => stored(STORAGE_KEY) !== 'closed');
  const toggle = () => {
    store(STORAGE_KEY, open ? 'closed' : null);
    setOpen(!open);
  };
  return (
    <section aria-label="Observer" className="flex-none border-t border-line-strong bg-paper-1">
      <h2>
        <button
          type="button"
          aria-expanded={open}
          onClick={toggle}
          className="flex h-[28px] w-full items-center gap-2 px-3 text-left strong"
        >
          <span aria-hidden="true" className="w-[10px] text-ink-3">
            {open ? '▾' : '▸'}
          </span>
          Observer
          {session.live && <span className="live-dot ml-auto" title="Follows the session, also if another client plays it." />}
        </button>
      </h2>
      {open && (
        <div className="max-h-[38dvh] overflow-y-auto px-3 pb-2" tabIndex={0}>
          <EpisodeDetails session={session} calls={calls} tools={tools} task={task} />
          <EnvironmentState
            environment={environment}
            session={session}
            endedCalls={calls.filter(({ state }) => state !== 'running').length}
          />
        </div>
      )}
    </section>
  );
}

function Property({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-ink-3 first-letter:uppercase">{name}</dt>
      <dd className="min-w-0 [overflow-wrap:anywhere]" data-fact={name}>
        {children}
      </dd>
    </>
  );
}

function EpisodeDetails({ session, calls, tools, task }: Omit<ObserverProps, 'environment'>) {
  return (
    <dl className="grid grid-cols-[88px_minmax(0,1fr)] gap-x-3 gap-y-[2px] text-[12px]">
      <Property name="task">{task}</Property>
      <Property name="session">
        <code className="select-all">{session.sid}</code>
      </Property>
      <Property name="state">
        <SessionState session={session} />
      </Property>
      <Property name="played by">
        <span title={holderText(session.holder)}>{holderName(session.holder)}</span>
      </Property>
      <Property name="steps">
        {formatCount(calls.length)}
        <LastStep calls={calls} />
      </Property>
      <Property name="reward so far">
        <Reward total={session.total_reward} scored={calls.filter(({ reward }) => reward !== null).length} />
      </Property>
      <Property name="finished">{calls.some(({ finished }) => finished) ? 'Yes' : 'No'}</Property>
      <Property name="tools">{tools ? <Tools tools={tools} /> : <span className="text-ink-3">–</span>}</Property>
    </dl>
  );
}

function LastStep({ calls }: Pick<ObserverProps, 'calls'>) {
  const running = calls.find(({ state }) => state === 'running');
  const last = calls.at(-1);
  if (running)
    return (
      <span className="text-ink-3">
        {' · '}
        <PlainText text={running.tool} /> is running
      </span>
    );
  return (
    last && (
      <span className="text-ink-3">
        {' · last '}
        <Age iso={last.started_at} />
      </span>
    )
  );
}

function Reward({ total, scored }: { total: number | null; scored: number }) {
  if (total === null)
    return (
      <span className="text-ink-3" title="Unscored, which is not 0">
        – No scored call
      </span>
    );
  return (
    <span className="tabular-nums">
      {formatReward(total)} <span className="text-ink-3">over {formatCount(scored)} scored</span>
    </span>
  );
}

function Tools({ tools: { tools, terminal_tool: terminal } }: { tools: ToolsAnswer }) {
  const names = [...new Set([...tools.map(({ name }) => name), ...(terminal ? [terminal.name] : [])])];
  return names.length === 0 ? 'None' : <PlainText text={names.join(', ')} />;
}

/** The state object of an OpenEnv server. The page reads it only while it is open, again after every call. */
function EnvironmentState({ environment, session, endedCalls }: Pick<ObserverProps, 'environment' | 'session'> & { endedCalls: number }) {
  const details = useQuery(environmentQuery(environment.owner, environment.name));
  const [open, setOpen] = useState(false);
  const available = details.data?.source.kind === 'openenv' && session.live;
  const state = useQuery({ ...stateQuery(session.sid, endedCalls), enabled: open && available });
  if (!available) return null;
  return (
    <div className="mt-2 border-t border-line pt-2">
      <button type="button" className="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? 'Hide environment state' : 'Show environment state'}
      </button>
      <p className="mt-1 text-[12px] text-policy">
        <span aria-hidden="true">▲</span> The state can contain the answer. A policy does not see it.
      </p>
      {open && (
        <div
          className="mt-1 rounded-[4px] border border-line bg-paper-0 p-2"
          aria-live="polite"
          role="group"
          aria-label="State of the environment"
        >
          {state.error ? (
            <p className="text-bad">{state.error.message}</p>
          ) : (
            state.data && <JsonTree value={state.data.state} openLevels={2} />
          )}
        </div>
      )}
    </div>
  );
}
