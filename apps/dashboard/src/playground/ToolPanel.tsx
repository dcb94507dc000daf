import type { ToolSpec, ToolsAnswer } from '@palestra/protocol';
import { type FormEvent, type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from 'react';
import { PlainText } from '../text/PlainText.tsx';
import { blank, type Draft, fill } from './form/draft.ts';
import { argumentsOf } from './form/field.ts';
import { type Problem, readDraft } from './form/read.ts';
import { idOfProblem, SchemaForm } from './form/SchemaForm.tsx';
import type { PlayCall } from '../data/playground.ts';

/** Tools as the player chooses them: the terminal one is listed last where it is not among the others. */
function listed({ tools, terminal_tool: terminal }: ToolsAnswer): ToolSpec[] {
  if (!terminal || tools.some(({ name }) => name === terminal.name)) return tools;
  const schema =
    terminal.arg === null ? null : { type: 'object', properties: { [terminal.arg]: { type: 'string' } }, required: [terminal.arg] };
  return [...tools, { name: terminal.name, description: terminal.description, input_schema: schema }];
}

/** The tool that is filled in; `input`: JSON text that its form begins with, `take` counts up with every choice. */
export interface Chosen {
  tool: string;
  input: string | null;
  take: number;
}
interface PanelProps {
  tools: ToolsAnswer;
  chosen: Chosen | null;
  choose: (tool: string) => void;
  /** Why nothing can be called now; null: something can. */
  closed: string | null;
  busy: boolean;
  onCall: (call: PlayCall) => void;
}

/** The tools, and the form of the chosen one. */
export function ToolPanel({ tools, chosen, choose, closed, busy, onCall }: PanelProps) {
  const all = useMemo(() => listed(tools), [tools]);
  const group = useId();
  const tool = all.find((one) => one.name === chosen?.tool) ?? all[0];
  if (!tool) return <p className="p-3 text-ink-3">This task has no tool.</p>;
  return (
    <section aria-label="Tools" className="flex min-h-0 flex-col">
      <fieldset className="min-w-0 border-b border-line py-1" aria-label="Tool">
        {all.map((one) => (
          <label
            key={one.name}
            className={`flex cursor-pointer items-center gap-2 px-3 py-[3px] hover:bg-paper-2 ${one === tool ? 'bg-paper-2' : ''}`}
          >
            <input type="radio" name={group} value={one.name} checked={one === tool} onChange={() => choose(one.name)} />
            <span className="mono flex-none font-medium text-[var(--role-tool)]">{one.name}</span>
            <span className="min-w-0 flex-1 truncate text-[12px] text-ink-3" title={one.description}>
              {one.description.split('\n', 1)[0]}
            </span>
            {tools.terminal_tool?.name === one.name && <span className="chip">ends it</span>}
          </label>
        ))}
      </fieldset>
      <ToolForm
        key={`${tool.name} ${chosen?.take ?? 0}`}
        tool={tool}
        preset={chosen?.tool === tool.name ? chosen.input : null}
        closed={closed}
        busy={busy}
        onCall={onCall}
      />
    </section>
  );
}

const firstControl = (form: HTMLFormElement | null) => form?.querySelector<HTMLElement>('textarea, select, input, button[type=submit]');
const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
};

function ToolForm({
  tool,
  preset,
  closed,
  busy,
  onCall,
}: Pick<PanelProps, 'closed' | 'busy' | 'onCall'> & { tool: ToolSpec; preset: string | null }) {
  const id = useId();
  const field = useMemo(() => argumentsOf(tool.input_schema), [tool]);
  const [draft, setDraft] = useState<Draft>(() => (preset === null ? blank(field) : fill(field, parsed(preset))));
  /** JSON text instead of the form. */
  const [free, setFree] = useState<string | null>(null);
  const [asked, setAsked] = useState(false);
  const element = useRef<HTMLFormElement>(null);
  // Where nobody's focus is taken away, and where the reader asked for this form.
  useEffect(() => {
    if (preset !== null || document.activeElement === document.body) firstControl(element.current)?.focus({ preventScroll: true });
  }, [preset]);
  const raw = free !== null;
  const reading = raw
    ? readDraft({ ...field, nullable: false, shape: { kind: 'json', expects: 'object' } }, { kind: 'text', text: free, as: 'text' })
    : readDraft(field, draft);
  const problems: readonly Problem[] = asked ? reading.problems : [];

  const lead = (problem: Problem) => {
    const control = document.getElementById(raw ? `${id}-free` : idOfProblem(id, problem.path));
    const named = document.getElementById(`${idOfProblem(id, problem.path)}-name`);
    (named ?? control)?.focus();
  };
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (busy || closed !== null) return;
    setAsked(true);
    const [first] = reading.problems;
    if (first) return lead(first);
    onCall({ tool: tool.name, input: reading.json ?? '{}' });
    setAsked(false);
    setDraft(blank(field));
    setFree(null);
    firstControl(element.current)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit(event);
  };
  return (
    <form
      ref={element}
      onSubmit={submit}
      onKeyDown={onKeyDown}
      noValidate
      aria-label={`Call ${tool.name}`}
      className="flex flex-col gap-3 p-3"
    >
      {tool.description && (
        <p className="max-h-[140px] overflow-y-auto whitespace-pre-line text-ink-2">
          <PlainText text={tool.description} />
        </p>
      )}
      {raw ? (
        <div>
          <label htmlFor={`${id}-free`} className="label mb-[2px] block">
            The whole input as JSON
          </label>
          <textarea
            id={`${id}-free`}
            className="input mono block h-auto min-h-[120px] w-full resize-y py-[4px] [field-sizing:content]"
            spellCheck={false}
            aria-invalid={problems.length > 0}
            value={free}
            onChange={(event) => setFree(event.target.value)}
          />
          {problems[0] && (
            <p className="mt-[2px] text-[12px] text-bad">
              <span aria-hidden="true">✕ </span>
              {problems[0].message}
            </p>
          )}
        </div>
      ) : (
        <SchemaForm field={field} draft={draft} problems={problems} form={id} onChange={setDraft} />
      )}
      <div className="sticky bottom-0 -mx-3 -mb-3 border-t border-line bg-paper-0 px-3 py-2">
        <div className="flex flex-wrap items-center gap-2">
          <button type="submit" className="button primary" disabled={busy || closed !== null} aria-keyshortcuts="Control+Enter">
            {busy ? 'Running…' : `Call ${tool.name}`}
          </button>
          <kbd>Ctrl</kbd>
          <kbd>Enter</kbd>
          <span className="flex-1" />
          <button
            type="button"
            className="link text-[12px]"
            onClick={() => {
              setAsked(false);
              setFree(raw ? null : readable(reading.json));
            }}
          >
            {raw ? 'Back to the form' : 'Write JSON'}
          </button>
        </div>
        <p role="status" className="mt-1 text-[12px] text-ink-3 empty:hidden">
          {closed ??
            (problems.length > 0 ? `${problems.length === 1 ? 'One thing is' : `${problems.length} things are`} to be mended above.` : '')}
        </p>
      </div>
    </form>
  );
}

const readable = (json: string | null): string => (json === null || json === '{}' ? '{\n  \n}' : json);
