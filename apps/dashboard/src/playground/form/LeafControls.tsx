import type { Draft } from './draft.ts';
import { isBoolean } from './field.ts';
import { controlId, type ControlProps, messageAt } from './controls.tsx';
import { readTensor, sizeOfTensor } from './tensor.ts';

/** Controls of fields without nested fields. */

function controlProps({ form, path, problems, required }: ControlProps & { required?: boolean }) {
  const id = controlId(form, path);
  const invalid = messageAt(problems, path) !== undefined;
  return { id, 'aria-invalid': invalid, 'aria-required': required !== false, 'aria-describedby': `${id}-problem ${id}-help` };
}

const input = 'input w-full aria-[invalid=true]:border-bad disabled:opacity-45';

type TextDraft = Draft & { kind: 'text' };
type TextProps = ControlProps & { label: string; required?: boolean; draft: TextDraft };

function hintOf({ field: { shape }, draft, required }: TextProps): string {
  if (draft.as !== 'text') return draft.as === 'empty' ? 'Empty text' : 'null';
  if (required === false) return 'Left out';
  if (shape.kind === 'tensor') return shape.sizes.length === 1 ? '1, 2, 3' : shape.sizes.length === 2 ? '1, 2\n3, 4' : '[[[1, 2]]]';
  return shape.kind === 'json' ? 'JSON' : '';
}

/** Input of texts, numbers, lists of numbers and JSON. */
export function TextControl(props: TextProps) {
  const { field, draft, label, onChange } = props;
  const { shape } = field;
  const disabled = draft.as !== 'text';
  const common = {
    ...controlProps(props),
    'aria-label': label,
    disabled,
    value: disabled ? '' : draft.text,
    placeholder: hintOf(props),
  };
  const set = (text: string) => onChange({ ...draft, text, as: 'text' });
  const mark = (as: 'empty' | 'null', text: string, className: string) => (
    <label className={`label items-center gap-1 ${className}`}>
      <input
        type="checkbox"
        aria-label={`${label}: ${text}`}
        checked={draft.as === as}
        onChange={(event) => onChange({ ...draft, as: event.target.checked ? as : 'text' })}
      />
      {text}
    </label>
  );
  // Inside of the blank control, so that the fields below do not move: while it has the focus, has a problem, or is sent as empty text.
  const offersEmpty = shape.kind === 'string' && !shape.minLength && draft.as !== 'null' && (disabled || draft.text === '');
  const emptyShown = disabled || messageAt(props.problems, props.path) !== undefined;
  const rows = shape.kind === 'json' || (shape.kind === 'string' && shape.long) ? 4 : shape.kind === 'tensor' ? shape.sizes.length : 1;
  return (
    <div className="group relative min-w-0">
      {shape.kind === 'number' ? (
        <input
          {...common}
          className={`${input} mono`}
          inputMode={shape.integer ? 'numeric' : 'decimal'}
          autoComplete="off"
          onChange={(event) => set(event.target.value)}
        />
      ) : (
        <textarea
          {...common}
          rows={rows}
          spellCheck={false}
          className={`${input} mono block h-auto max-h-[260px] min-h-[28px] resize-y py-[4px] [field-sizing:content]`}
          style={rows > 1 ? { minHeight: rows * 18 + 10 } : undefined}
          onChange={(event) => set(event.target.value)}
        />
      )}
      {offersEmpty &&
        mark('empty', 'Empty text', `absolute right-2 top-[6px] ${emptyShown ? 'inline-flex' : 'hidden group-focus-within:inline-flex'}`)}
      <TensorSize {...props} />
      {field.nullable && mark('null', 'null', 'mt-[2px] inline-flex')}
    </div>
  );
}

/** The size of the list of numbers that the text has so far. */
function TensorSize({ field: { shape }, draft }: TextProps) {
  const text = draft.text.trim();
  if (shape.kind !== 'tensor' || draft.as !== 'text' || text === '') return null;
  const { json } = readTensor(shape, text);
  return json === null ? null : <p className="label mt-[2px] tabular-nums">Size {sizeOfTensor(json)}</p>;
}

const shownValue = (value: unknown): string => (typeof value === 'string' ? value || '“” (empty text)' : (JSON.stringify(value) ?? ''));

type PickDraft = Draft & { kind: 'pick' };
/** A choice of values: a checkbox for a required boolean, the text of a constant, otherwise a select box. */
export function PickControl(props: ControlProps & { label: string; required?: boolean; draft: PickDraft }) {
  const { field, draft, label, onChange, required } = props;
  if (field.shape.kind !== 'pick') return null;
  const { values } = field.shape;
  if (values.length === 1 && required !== false && draft.index === 0)
    return (
      <output id={controlId(props.form, props.path)} aria-label={label} className="mono text-ink-2">
        {shownValue(values[0])}
      </output>
    );
  if (isBoolean({ values }) && required !== false && draft.index !== null)
    return (
      <label className="mono inline-flex items-center gap-2">
        <input
          {...controlProps(props)}
          type="checkbox"
          aria-label={label}
          checked={draft.index === 0}
          onChange={(event) => onChange({ kind: 'pick', index: event.target.checked ? 0 : 1 })}
        />
        {draft.index === 0 ? 'true' : 'false'}
      </label>
    );
  return (
    <select
      {...controlProps(props)}
      aria-label={label}
      className={`${input} mono`}
      value={draft.index ?? ''}
      onChange={(event) => onChange({ kind: 'pick', index: event.target.value === '' ? null : Number(event.target.value) })}
    >
      <option value="">{required === false ? 'Left out' : 'Choose…'}</option>
      {values.map((value, index) => (
        <option key={index} value={index}>
          {shownValue(value)}
        </option>
      ))}
    </select>
  );
}
