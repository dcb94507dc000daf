import type { JsonValue, ToolSpec } from '@palestra/protocol';
import { type FormEvent, type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from 'react';
import type { PlayCall } from '../data/playground.ts';
import { PlainText } from '../text/PlainText.tsx';
import { withLegal } from './episode.ts';
import { blank, type Draft, fill } from './form/draft.ts';
import { argumentsOf, type Field } from './form/field.ts';
import { Message } from './form/parts.tsx';
import { type Problem, readDraft } from './form/read.ts';
import { judge, objectIn } from './form/same.ts';
import { idOfProblem, SchemaForm } from './form/SchemaForm.tsx';
import { LegalActions } from './LegalActions.tsx';

export interface CallFormProps {
  tool: ToolSpec;
  /** JSON text that it begins with. */
  preset: string | null;
  /** Why nothing can be called now; null: something can. */
  closed: string | null;
  busy: boolean;
  /** The tool is the environment's one action. */
  action: boolean;
  /** What the observation says may be done; sent by one click. */
  legal: readonly JsonValue[];
  /** The call before, to be sent once more. */
  last: PlayCall | null;
  onCall: (call: PlayCall) => void;
}

const firstControl = (form: HTMLFormElement | null) =>
  form?.querySelector<HTMLElement>('[data-fields] :is(textarea, select, input, output), button[type=submit]');
const startOf = (field: Field, preset: string | null): Draft => (preset === null ? blank(field) : fill(field, objectIn(preset)));
const isTrue = (value: boolean | undefined): boolean => value === true;

/** The input of a tool as a form, or as JSON: two ways to write one value. Ctrl+Enter sends it. */
export function CallForm({ tool, preset, closed, busy, action, legal, last, onCall }: CallFormProps) {
  const id = useId();
  const field = useMemo(() => argumentsOf(tool.input_schema), [tool]);
  const [draft, setDraft] = useState<Draft>(() => startOf(field, preset));
  /** JSON text instead of the form; also where the form could not say what it is to begin with. */
  const [free, setFree] = useState<string | null>(() => (preset === null || isTrue(judge(field, preset)?.same) ? null : preset));
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
  const off = busy || closed !== null;

  const lead = (problem: Problem) => {
    const control = document.getElementById(raw ? `${id}-free` : idOfProblem(id, problem.path));
    const named = document.getElementById(`${idOfProblem(id, problem.path)}-name`);
    (named ?? control)?.focus();
  };
  const send = (json: string) => {
    onCall({ tool: tool.name, input: json });
    setAsked(false);
    setDraft(blank(field));
    setFree(null);
  };
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (off) return;
    setAsked(true);
    const [first] = reading.problems;
    if (first) return lead(first);
    send(reading.json ?? '{}');
    firstControl(element.current)?.focus();
  };
  const again = () => {
    if (!off && last !== null) onCall(last);
  };
  /** At once when nothing is missing; else the form says what. */
  const take = (one: JsonValue) => {
    const filled = withLegal(field, draft, one);
    if (off || filled === null) return;
    const { json, problems: missing } = readDraft(field, filled);
    if (missing.length === 0) return send(json ?? '{}');
    setFree(null);
    setDraft(filled);
    setAsked(true);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (event.shiftKey) again();
    else submit();
  };
  const toJson = () => {
    setAsked(false);
    setFree(readable(reading.json));
  };
  const toForm = () => {
    const value = objectIn(free ?? '');
    setAsked(value === null);
    if (value === null) return;
    setDraft(fill(field, value));
    setFree(null);
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
      {legal.length > 0 && <LegalActions legal={legal} off={off} takes={(one) => withLegal(field, draft, one) !== null} onTake={take} />}
      <Modes raw={raw} toForm={toForm} toJson={toJson} />
      <div data-fields className="min-w-0">
        {raw ? (
          <FreeInput id={`${id}-free`} field={field} text={free} problem={problems[0]?.message} onChange={setFree} />
        ) : (
          <SchemaForm field={field} draft={draft} problems={problems} form={id} onChange={setDraft} />
        )}
      </div>
      <div className="sticky bottom-0 -mx-3 -mb-3 border-t border-line bg-paper-0 px-3 py-2">
        <div className="flex flex-wrap items-center gap-2">
          <button type="submit" className="button primary" disabled={off} aria-keyshortcuts="Control+Enter">
            {busy ? 'Running…' : action ? 'Take this action' : `Call ${tool.name}`}
          </button>
          <kbd>Ctrl</kbd>
          <kbd>Enter</kbd>
          <span className="flex-1" />
          {last !== null && (
            <button
              type="button"
              className="button"
              disabled={off}
              aria-keyshortcuts="Control+Shift+Enter"
              title={`${last.tool} ${last.input.slice(0, 300)}\nCtrl+Shift+Enter`}
              onClick={again}
            >
              Repeat last
            </button>
          )}
        </div>
        <p role="status" className="mt-1 text-[12px] text-ink-3 empty:hidden">
          {closed ??
            (problems.length > 0 ? `${problems.length === 1 ? 'One thing is' : `${problems.length} things are`} to be mended above.` : '')}
        </p>
      </div>
    </form>
  );
}

const readable = (json: string | null): string => {
  if (json === null || json === '{}') return '{\n  \n}';
  const indented = JSON.stringify(JSON.parse(json), null, 2);
  // Indenting must not change how a number is spelled.
  return indented.replaceAll(/\s/g, '') === json.replaceAll(/\s/g, '') ? indented : json;
};

function Modes({ raw, toForm, toJson }: { raw: boolean; toForm: () => void; toJson: () => void }) {
  const style = 'px-[8px] h-[22px] text-[12px] aria-pressed:bg-paper-2 aria-pressed:text-ink-1 text-ink-2 hover:text-ink-1';
  return (
    <div
      role="group"
      aria-label="Written as"
      className="flex w-fit divide-x divide-line overflow-hidden rounded-[4px] border border-line-strong"
    >
      <button type="button" className={style} aria-pressed={!raw} onClick={() => raw && toForm()}>
        Form
      </button>
      <button type="button" className={style} aria-pressed={raw} onClick={() => !raw && toJson()}>
        JSON
      </button>
    </div>
  );
}

interface FreeProps {
  id: string;
  field: Field;
  text: string;
  problem: string | undefined;
  onChange: (text: string) => void;
}

/** The input as JSON. What the schema does not allow is said, and can be sent all the same: a policy may send it, too. */
function FreeInput({ id, field, text, problem, onChange }: FreeProps) {
  const judged = useMemo(() => judge(field, text), [field, text]);
  return (
    <div>
      <label htmlFor={id} className="label mb-[2px] block">
        The whole input as JSON
      </label>
      <textarea
        id={id}
        className="input mono block h-auto min-h-[120px] w-full resize-y py-[4px] [field-sizing:content] aria-[invalid=true]:border-bad"
        spellCheck={false}
        aria-invalid={problem !== undefined}
        aria-describedby={`${id}-problem ${id}-schema`}
        value={text}
        onChange={(event) => onChange(event.target.value)}
      />
      <Message text={problem} id={`${id}-problem`} />
      <div id={`${id}-schema`} className="mt-[2px] text-[12px] leading-[16px] text-policy">
        {judged !== null && !judged.same && (
          <>
            <p>The tool’s schema does not describe this; it is sent as it is.</p>
            <ul>
              {judged.problems.slice(0, 5).map(({ path, message }) => (
                <li key={path}>
                  <PlainText text={path === '' ? message : `${path}: ${message}`} />
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </div>
  );
}
