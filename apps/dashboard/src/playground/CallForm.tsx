import type { JsonValue, ToolSpec } from '@palestra/protocol';
import { type FormEvent, type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from 'react';
import type { PlayCall } from '../data/playground.ts';
import { PlainText } from '../text/PlainText.tsx';
import { withLegalAction } from './action-environment.ts';
import { blank, type Draft, fill } from './form/draft.ts';
import { argumentsOf, type Field } from './form/field.ts';
import { Message } from './form/controls.tsx';
import { type Problem, readDraft } from './form/read.ts';
import { compareWithForm, objectIn } from './form/compare.ts';
import { idOfProblem, SchemaForm } from './form/SchemaForm.tsx';
import { LegalActions } from './LegalActions.tsx';

export interface CallFormProps {
  tool: ToolSpec;
  /** JSON text that fills the form at first. */
  preset: string | null;
  /** Why no call is possible; null if calls are possible. */
  closedReason: string | null;
  busy: boolean;
  /** The tool is the only action of the environment. */
  isAction: boolean;
  /** Legal actions that the observation lists. One click sends one. */
  legal: readonly JsonValue[];
  /** The previous call, for "Repeat last". */
  last: PlayCall | null;
  onCall: (call: PlayCall) => void;
}

const firstControl = (form: HTMLFormElement | null) =>
  form?.querySelector<HTMLElement>('[data-fields] :is(textarea, select, input, output), button[type=submit]');
const initialDraft = (field: Field, preset: string | null): Draft => (preset === null ? blank(field) : fill(field, objectIn(preset)));

/** The input of a tool as a form or as JSON. Ctrl+Enter sends it. */
export function CallForm({ tool, preset, closedReason, busy, isAction, legal, last, onCall }: CallFormProps) {
  const id = useId();
  const field = useMemo(() => argumentsOf(tool.input_schema), [tool]);
  const [draft, setDraft] = useState<Draft>(() => initialDraft(field, preset));
  /** JSON text instead of the form; null in form mode. A preset that the form cannot express starts in JSON mode. */
  const [jsonText, setJsonText] = useState<string | null>(() =>
    preset === null || compareWithForm(field, preset)?.same === true ? null : preset,
  );
  const [showProblems, setShowProblems] = useState(false);
  const element = useRef<HTMLFormElement>(null);
  // Only if nothing else has the focus, or if the reader asked for this form.
  useEffect(() => {
    if (preset !== null || document.activeElement === document.body) firstControl(element.current)?.focus({ preventScroll: true });
  }, [preset]);
  const jsonMode = jsonText !== null;
  const reading = jsonMode
    ? readDraft({ ...field, nullable: false, shape: { kind: 'json', expects: 'object' } }, { kind: 'text', text: jsonText, as: 'text' })
    : readDraft(field, draft);
  const problems: readonly Problem[] = showProblems ? reading.problems : [];
  const disabled = busy || closedReason !== null;

  const focusProblem = (problem: Problem) => {
    const control = document.getElementById(jsonMode ? `${id}-json` : idOfProblem(id, problem.path));
    const nameInput = document.getElementById(`${idOfProblem(id, problem.path)}-name`);
    (nameInput ?? control)?.focus();
  };
  const send = (json: string) => {
    onCall({ tool: tool.name, input: json });
    setShowProblems(false);
    setDraft(blank(field));
    setJsonText(null);
  };
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (disabled) return;
    setShowProblems(true);
    const [first] = reading.problems;
    if (first) return focusProblem(first);
    send(reading.json ?? '{}');
    firstControl(element.current)?.focus();
  };
  const repeat = () => {
    if (!disabled && last !== null) onCall(last);
  };
  /** Sends the action if the input is complete. Otherwise the form shows what is missing. */
  const takeLegalAction = (legalAction: JsonValue) => {
    const filled = withLegalAction(field, draft, legalAction);
    if (disabled || filled === null) return;
    const { json, problems: missing } = readDraft(field, filled);
    if (missing.length === 0) return send(json ?? '{}');
    setJsonText(null);
    setDraft(filled);
    setShowProblems(true);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (event.shiftKey) repeat();
    else submit();
  };
  const toJson = () => {
    setShowProblems(false);
    setJsonText(readable(reading.json));
  };
  const toForm = () => {
    const value = objectIn(jsonText ?? '');
    setShowProblems(value === null);
    if (value === null) return;
    setDraft(fill(field, value));
    setJsonText(null);
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
      {legal.length > 0 && (
        <LegalActions
          legal={legal}
          disabled={disabled}
          fits={(legalAction) => withLegalAction(field, draft, legalAction) !== null}
          onTake={takeLegalAction}
        />
      )}
      <Modes jsonMode={jsonMode} toForm={toForm} toJson={toJson} />
      <div data-fields className="min-w-0">
        {jsonMode ? (
          <JsonInput id={`${id}-json`} field={field} text={jsonText} problem={problems[0]?.message} onChange={setJsonText} />
        ) : (
          <SchemaForm field={field} draft={draft} problems={problems} form={id} onChange={setDraft} />
        )}
      </div>
      <div className="sticky bottom-0 -mx-3 -mb-3 border-t border-line bg-paper-0 px-3 py-2">
        <div className="flex flex-wrap items-center gap-2">
          <button type="submit" className="button primary" disabled={disabled} aria-keyshortcuts="Control+Enter">
            {busy ? 'Running…' : isAction ? 'Take this action' : `Call ${tool.name}`}
          </button>
          <kbd>Ctrl</kbd>
          <kbd>Enter</kbd>
          <span className="flex-1" />
          {last !== null && (
            <button
              type="button"
              className="button"
              disabled={disabled}
              aria-keyshortcuts="Control+Shift+Enter"
              title={`${last.tool} ${last.input.slice(0, 300)}\nCtrl+Shift+Enter`}
              onClick={repeat}
            >
              Repeat last
            </button>
          )}
        </div>
        <p role="status" className="mt-1 text-[12px] text-ink-3 empty:hidden">
          {closedReason ??
            (problems.length > 0 ? `Fix ${problems.length === 1 ? 'the problem' : `${problems.length} problems`} above.` : '')}
        </p>
      </div>
    </form>
  );
}

const readable = (json: string | null): string => {
  if (json === null || json === '{}') return '{\n  \n}';
  const indented = JSON.stringify(JSON.parse(json), null, 2);
  // Formatting with JSON.stringify must not change the spelling of a number.
  return indented.replaceAll(/\s/g, '') === json.replaceAll(/\s/g, '') ? indented : json;
};

function Modes({ jsonMode, toForm, toJson }: { jsonMode: boolean; toForm: () => void; toJson: () => void }) {
  const className = 'px-[8px] h-[22px] text-[12px] aria-pressed:bg-paper-2 aria-pressed:text-ink-1 text-ink-2 hover:text-ink-1';
  return (
    <div
      role="group"
      aria-label="Input format"
      className="flex w-fit divide-x divide-line overflow-hidden rounded-[4px] border border-line-strong"
    >
      <button type="button" className={className} aria-pressed={!jsonMode} onClick={() => jsonMode && toForm()}>
        Form
      </button>
      <button type="button" className={className} aria-pressed={jsonMode} onClick={() => !jsonMode && toJson()}>
        JSON
      </button>
    </div>
  );
}

interface JsonInputProps {
  id: string;
  field: Field;
  text: string;
  problem: string | undefined;
  onChange: (text: string) => void;
}

/** The input as JSON. Input that violates the schema gets a warning but can be sent, because a policy can send it too. */
function JsonInput({ id, field, text, problem, onChange }: JsonInputProps) {
  const comparison = useMemo(() => compareWithForm(field, text), [field, text]);
  return (
    <div>
      <label htmlFor={id} className="label mb-[2px] block">
        Input as JSON
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
        {comparison !== null && !comparison.same && (
          <>
            <p>The input does not match the tool’s schema. It is sent unchanged.</p>
            <ul>
              {comparison.problems.slice(0, 5).map(({ path, message }) => (
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
