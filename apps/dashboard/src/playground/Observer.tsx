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
  place: { owner: string; name: string };
  session: SessionView;
  calls: readonly SessionCallView[];
  tools: ToolsAnswer | undefined;
  task: string;
}

const KEPT = 'palestra-observer';

/** What is known of the episode, whoever plays it: follows the session's events. */
export function Observer({ place, session, calls, tools, task }: ObserverProps) {
  const [open, setOpen] = useState(() => stored(KEPT) !== 'closed');
  const toggle = () => {
    store(KEPT, open ? 'closed' : null);
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
          {session.live && <span className="live-dot ml-auto" title="Follows the session as it goes on, whoever plays it." />}
        </button>
      </h2>
      {open && (
        <div className="max-h-[38dvh] overflow-y-auto px-3 pb-2" tabIndex={0}>
          <Facts session={session} calls={calls} tools={tools} task={task} />
          <OwnState place={place} session={session} ended={calls.filter(({ state }) => state !== 'running').length} />
        </div>
      )}
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-ink-3">{name}</dt>
      <dd className="min-w-0 [overflow-wrap:anywhere]" data-fact={name}>
        {children}
      </dd>
    </>
  );
}

function Facts({ session, calls, tools, task }: Omit<ObserverProps, 'place'>) {
  return (
    <dl className="grid grid-cols-[88px_minmax(0,1fr)] gap-x-3 gap-y-[2px] text-[12px]">
      <Fact name="task">{task}</Fact>
      <Fact name="session">
        <code className="select-all">{session.sid}</code>
      </Fact>
      <Fact name="state">
        <SessionState session={session} />
      </Fact>
      <Fact name="played by">
        <span title={holderText(session.holder)}>{holderName(session.holder)}</span>
      </Fact>
      <Fact name="steps">
        {formatCount(calls.length)}
        <LastStep calls={calls} />
      </Fact>
      <Fact name="reward so far">
        <Reward total={session.total_reward} scored={calls.filter(({ reward }) => reward !== null).length} />
      </Fact>
      <Fact name="finished">{calls.some(({ finished }) => finished) ? 'yes' : 'no'}</Fact>
      <Fact name="tools">{tools ? <Tools tools={tools} /> : <span className="text-ink-3">–</span>}</Fact>
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
        <PlainText text={running.tool} /> runs
      </span>
    );
  return (
    last && (
      <span className="text-ink-3">
        {' · the last '}
        <Age iso={last.started_at} />
      </span>
    )
  );
}

function Reward({ total, scored }: { total: number | null; scored: number }) {
  if (total === null)
    return (
      <span className="text-ink-3" title="Not scored, which is not 0">
        – nothing scored
      </span>
    );
  return (
    <span className="tabular-nums">
      {formatReward(total, { digits: 3 })} <span className="text-ink-3">over {formatCount(scored)} scored</span>
    </span>
  );
}

function Tools({ tools: { tools, terminal_tool: terminal } }: { tools: ToolsAnswer }) {
  const names = [...new Set([...tools.map(({ name }) => name), ...(terminal ? [terminal.name] : [])])];
  return names.length === 0 ? 'none' : <PlainText text={names.join(', ')} />;
}

/** The state object of an environment whose server has one to tell: closed until asked for, then read again after every action. */
function OwnState({ place, session, ended }: Pick<ObserverProps, 'place' | 'session'> & { ended: number }) {
  const environment = useQuery(environmentQuery(place.owner, place.name));
  const [open, setOpen] = useState(false);
  const told = environment.data?.source.kind === 'openenv' && session.live;
  const state = useQuery({ ...stateQuery(session.sid, ended), enabled: open && told });
  if (!told) return null;
  return (
    <div className="mt-2 border-t border-line pt-2">
      <button type="button" className="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? 'Hide the environment’s state' : 'Show the environment’s state'}
      </button>
      <p className="mt-1 text-[12px] text-policy">
        <span aria-hidden="true">▲</span> It may hold the answer: a policy never sees it.
      </p>
      {open && (
        <div
          className="mt-1 rounded-[4px] border border-line bg-paper-0 p-2"
          aria-live="polite"
          role="group"
          aria-label="State of the environment"
        >
          {state.error ? <p className="text-bad">{state.error.message}</p> : state.data && <JsonTree value={state.data.state} opened={2} />}
        </div>
      )}
    </div>
  );
}
