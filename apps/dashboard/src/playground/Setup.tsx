import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { EnvironmentDiscoveryView } from '@palestra/protocol';
import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from 'react';
import { newSid, openSession, type SessionChoice } from '../data/playground.ts';
import { TASK_PAGE, tasksQuery } from '../data/queries.ts';
import { formatCount } from '../format/number.ts';
import { PlainText } from '../text/PlainText.tsx';

type Variant = EnvironmentDiscoveryView['variants'][number];
interface SetupProps {
  environment: { owner: string; name: string };
  variants: Variant[];
}
const from = '/environments/$owner/$name/play' as const;

/** Chooses the task: an index in a split, or a custom task spec. The address has every choice. */
export function Setup({ environment, variants }: SetupProps) {
  const search = useSearch({ from });
  const navigate = useNavigate({ from });
  const [spec, setSpec] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isOpening, setIsOpening] = useState(false);
  const opening = useRef<AbortController | null>(null);
  const startButton = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (document.activeElement === document.body) startButton.current?.focus();
  }, []);
  useEffect(() => () => opening.current?.abort(), []);
  const variant = variants.find(({ name }) => name === search.variant) ?? variants.find((candidate) => candidate.is_default) ?? variants[0];
  if (!variant) return <p className="p-4 text-ink-2">The server of this environment lists no variants.</p>;
  const split = variant.splits.find(({ name }) => name === search.split) ?? variant.splits[0];
  const index = search.task ?? 0;
  const isCustom = spec !== null || split === undefined;

  const start = (event?: FormEvent) => {
    event?.preventDefault();
    if (isOpening) return;
    const found = isCustom ? problemOfSpec(spec ?? '') : problemOfIndex(index, split.num_tasks);
    setProblem(found);
    if (found !== null) return;
    const request: SessionChoice = {
      environment: `${environment.owner}/${environment.name}`,
      variant: variant.name,
      task: isCustom ? { spec: spec ?? '' } : { split: split.name, index },
    };
    const controller = new AbortController();
    opening.current = controller;
    setIsOpening(true);
    openSession(newSid(), request, controller.signal).then(
      (sid) =>
        void navigate({
          search: (before) => ({ ...before, variant: variant.name, split: split?.name, task: isCustom ? undefined : index, sid }),
        }),
      (error: unknown) => {
        setIsOpening(false);
        if (!controller.signal.aborted) setProblem(error instanceof Error ? error.message : String(error));
      },
    );
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) start(event);
  };
  const go = (task: number) => void navigate({ search: (before) => ({ ...before, task }), replace: true });
  return (
    <form onSubmit={start} onKeyDown={onKeyDown} noValidate className="flex max-w-[860px] flex-col gap-4 p-4" aria-label="Choose a task">
      <div className="flex flex-wrap items-end gap-3">
        {variants.length > 1 && (
          <Labelled label="Variant">
            <select
              className="input"
              value={variant.name}
              onChange={(event) => void navigate({ search: { variant: event.target.value }, replace: true })}
            >
              {variants.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </Labelled>
        )}
        {split && !isCustom && (
          <>
            <Labelled label="Split">
              <select
                className="input"
                value={split.name}
                onChange={(event) =>
                  void navigate({ search: (before) => ({ ...before, split: event.target.value, task: undefined }), replace: true })
                }
              >
                {variant.splits.map(({ name, num_tasks: count }) => (
                  <option key={name} value={name}>
                    {count === null ? name : `${name} (${formatCount(count)})`}
                  </option>
                ))}
              </select>
            </Labelled>
            <Labelled label={split.num_tasks === null ? 'Task' : `Task, 0 to ${formatCount(split.num_tasks - 1)}`}>
              <input
                className="input num w-[110px]"
                type="number"
                min={0}
                max={split.num_tasks === null ? undefined : split.num_tasks - 1}
                value={index}
                onChange={(event) => go(Math.max(0, Math.trunc(Number(event.target.value)) || 0))}
              />
            </Labelled>
            {split.num_tasks !== null && split.num_tasks > 1 && (
              <button type="button" className="button" onClick={() => go(Math.floor(Math.random() * split.num_tasks!))}>
                Random task
              </button>
            )}
          </>
        )}
        <span className="flex-1" />
        {split && (
          <button type="button" className="link" onClick={() => setSpec(isCustom ? null : '{\n  \n}')}>
            {isCustom ? 'Choose from a split' : 'Write a custom task'}
          </button>
        )}
      </div>
      {isCustom ? (
        <label className="flex flex-col gap-1">
          <span className="label">Task spec as JSON</span>
          <textarea
            className="input mono h-auto min-h-[200px] resize-y py-[6px]"
            spellCheck={false}
            value={spec ?? ''}
            aria-invalid={problem !== null}
            onChange={(event) => setSpec(event.target.value)}
          />
        </label>
      ) : (
        <TaskPreview environment={environment} variant={variant.name} split={split.name} index={index} edit={setSpec} />
      )}
      <div className="flex items-center gap-2">
        <button ref={startButton} type="submit" className="button primary" disabled={isOpening} aria-keyshortcuts="Control+Enter">
          {isOpening ? 'Opening…' : 'Start'}
        </button>
        {isOpening ? (
          <button type="button" className="button" onClick={() => opening.current?.abort()}>
            Cancel
          </button>
        ) : (
          <>
            <kbd>Ctrl</kbd>
            <kbd>Enter</kbd>
          </>
        )}
        <span role="status" className="text-ink-3">
          {isOpening ? 'The session may wait for a slot.' : ''}
        </span>
      </div>
      <p role="alert" className="text-bad">
        {problem}
      </p>
      <p className="max-w-[84ch] text-ink-3">
        You get the same prompt, tools and rewards as a policy. The session holds a slot until you end it or it times out. The ledger
        records its calls. Save the session to get a rollout.
      </p>
    </form>
  );
}

function problemOfSpec(spec: string): string | null {
  try {
    return JSON.parse(spec) === null ? 'A task cannot be null.' : null;
  } catch (error) {
    return `Not valid JSON: ${(error as Error).message}`;
  }
}

const problemOfIndex = (index: number, count: number | null): string | null =>
  count !== null && index >= count ? `Task ${index} does not exist. This split has the tasks 0 to ${count - 1}.` : null;

function Labelled({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <label className="flex flex-col gap-[2px]">
      <span className="label">{label}</span>
      {children}
    </label>
  );
}

/** The spec of the chosen task. */
function TaskPreview({
  environment,
  variant,
  split,
  index,
  edit,
}: {
  environment: SetupProps['environment'];
  variant: string;
  split: string;
  index: number;
  edit: (spec: string) => void;
}) {
  const start = Math.floor(index / TASK_PAGE) * TASK_PAGE;
  const page = useQuery(tasksQuery(environment.owner, environment.name, variant, split, start));
  const task = page.data?.tasks.find((candidate) => candidate.index === index);
  const text = task === undefined ? '' : (JSON.stringify(task.task_spec, null, 2) ?? '');
  return (
    <div>
      <div className="mb-[2px] flex items-baseline gap-3">
        <span className="label">
          Task {split} {index}
        </span>
        {task && (
          <button type="button" className="link text-[12px]" onClick={() => edit(text)}>
            Edit a copy
          </button>
        )}
      </div>
      <pre className="code-block max-h-[320px] min-h-[64px] overflow-auto whitespace-pre-wrap [overflow-wrap:anywhere]" tabIndex={0}>
        {page.error ? (
          page.error.message
        ) : task ? (
          <PlainText text={text.slice(0, 50_000)} />
        ) : page.data ? (
          `Task ${index} does not exist.`
        ) : (
          ''
        )}
      </pre>
    </div>
  );
}
