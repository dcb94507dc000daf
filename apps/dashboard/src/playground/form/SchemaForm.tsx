import { type ReactNode, useId } from 'react';
import { PlainText } from '../../text/PlainText.tsx';
import { blank, type Draft, isSimple } from './draft.ts';
import { type Field, limitsOf, type Member, typeName } from './field.ts';
import { PickControl, TextControl } from './LeafControls.tsx';
import { Add, controlId, type ControlProps, Message, messageAt, Remove } from './controls.tsx';
import { pathOf } from './read.ts';

/** The id of the control that a problem is about. */
export const idOfProblem = controlId;

/** A form generated from the schema of an object, one row per member. Controlled: the caller has the draft and the problems. */
export function SchemaForm(props: Omit<ControlProps, 'path' | 'form'> & { form: string }) {
  const { field } = props;
  if (field.shape.kind === 'object' && field.shape.members.length === 0 && field.shape.others === null)
    return <p className="text-ink-3">No arguments.</p>;
  return field.shape.kind === 'object' ? <ObjectRows {...props} path="" /> : <Row {...props} path="" name="input" required />;
}

function replaced<T>(list: readonly T[], index: number, value: T): T[] {
  return list.map((old, at) => (at === index ? value : old));
}

function ObjectRows({ field, draft, path, problems, form, onChange }: ControlProps) {
  if (field.shape.kind !== 'object' || draft.kind !== 'object') return null;
  const { members, others } = field.shape;
  return (
    <div className="flex flex-col gap-3">
      {members.map((member, index) => (
        <MemberRow
          key={member.name}
          member={member}
          draft={draft.members[index] ?? null}
          path={pathOf(path, member.name)}
          problems={problems}
          form={form}
          onChange={(next) => onChange({ ...draft, members: replaced(draft.members, index, next) })}
        />
      ))}
      {others && <AdditionalMembers field={others} draft={draft} path={path} problems={problems} form={form} onChange={onChange} />}
    </div>
  );
}

/** Additional members, whose names the reader enters. */
function AdditionalMembers({ field, draft, path, problems, form, onChange }: ControlProps) {
  if (draft.kind !== 'object') return null;
  const set = (others: typeof draft.others) => onChange({ ...draft, others });
  return (
    <>
      {draft.others.map((other, index) => {
        const at = pathOf(path, `+${index}`);
        const message = messageAt(problems, at);
        return (
          <div key={index} className="flex flex-col gap-1 border-l border-line pl-3">
            <div className="flex gap-2">
              <input
                id={`${controlId(form, at)}-name`}
                className="input mono min-w-0 flex-1"
                placeholder="Name"
                aria-label={`Name of entry ${index + 1}`}
                aria-invalid={message !== undefined}
                value={other.name}
                onChange={(event) => set(replaced(draft.others, index, { ...other, name: event.target.value }))}
              />
              <Remove label={`Remove entry ${index + 1}`} onClick={() => set(draft.others.filter((_, at) => at !== index))} />
            </div>
            <Message text={message} id={`${controlId(form, at)}-problem`} />
            <Control
              field={field}
              draft={other.draft}
              path={at}
              problems={problems}
              form={form}
              label={`Value of entry ${index + 1}`}
              onChange={(next) => set(replaced(draft.others, index, { ...other, draft: next }))}
            />
          </div>
        );
      })}
      <Add onClick={() => set([...draft.others, { name: '', draft: blank(field) }])}>Add an entry</Add>
    </>
  );
}

function MemberRow({
  member: { name, required, field },
  draft,
  onChange,
  ...rest
}: Omit<ControlProps, 'field' | 'draft' | 'onChange'> & { member: Member; draft: Draft | null; onChange: (draft: Draft | null) => void }) {
  if (draft !== null)
    return (
      <Row {...rest} name={name} required={required} field={field} draft={draft} onChange={onChange}>
        {!required && !isSimple(field) && <Remove label={`Leave out ${name}`} onClick={() => onChange(null)} />}
      </Row>
    );
  return (
    <div>
      <Head name={name} required={required} field={field} id={controlId(rest.form, rest.path)} />
      <Add id={controlId(rest.form, rest.path)} label={`Add ${name}`} onClick={() => onChange(blank(field))}>
        Add {name}
      </Add>
      <Message text={messageAt(rest.problems, rest.path)} id={`${controlId(rest.form, rest.path)}-problem`} />
    </div>
  );
}

function Head({
  name,
  required,
  field,
  id,
  children,
}: {
  name: string;
  required: boolean;
  field: Field;
  id: string;
  children?: ReactNode;
}) {
  const type = typeName(field);
  return (
    <div className="mb-[3px] flex items-baseline gap-2">
      <label htmlFor={id} className="mono font-medium">
        <PlainText text={name} />
        {required && (
          <span className="text-bad" title="Required">
            {' '}
            <span aria-hidden="true">*</span>
            <span className="sr-only">required</span>
          </span>
        )}
      </label>
      <span className="label min-w-0 truncate font-mono" title={type}>
        {type}
      </span>
      {!required && <span className="label">Optional</span>}
      <span className="flex-1" />
      {children}
    </div>
  );
}

function Row(props: ControlProps & { name: string; required: boolean; children?: ReactNode }) {
  const { field, path, form, name, required, problems, children } = props;
  const id = controlId(form, path);
  const limits = limitsOf(field);
  const fallback = field.fallback === null || field.fallback.length > 80 ? '' : `default ${field.fallback}`;
  const constraints = [limits, fallback].filter(Boolean).join(', ');
  return (
    <div>
      <Head name={name} required={required} field={field} id={id}>
        {children}
      </Head>
      <Control {...props} label={name} />
      <Message text={messageAt(problems, path)} id={`${id}-problem`} />
      {(field.description || constraints) && (
        <p id={`${id}-help`} className="mt-[2px] text-[12px] leading-[16px] text-ink-3 first-letter:uppercase">
          {field.description && <PlainText text={field.description} />}{' '}
          {constraints && <span className="font-mono text-[11px]">{constraints}</span>}
        </p>
      )}
    </div>
  );
}

/** The control of a field, without its label. */
function Control(props: ControlProps & { label: string; required?: boolean }) {
  const { field, draft } = props;
  if (draft.kind === 'text') return <TextControl {...props} draft={draft} />;
  if (draft.kind === 'pick') return <PickControl {...props} draft={draft} />;
  if (draft.kind === 'list') return <ListControl {...props} draft={draft} />;
  if (draft.kind === 'oneOf') return <ChoiceControl {...props} draft={draft} />;
  return (
    <div role="group" aria-label={props.label} id={controlId(props.form, props.path)} className="border-l border-line pl-3">
      <ObjectRows {...props} field={field} />
    </div>
  );
}

type ListDraft = Draft & { kind: 'list' };
function ListControl(props: ControlProps & { label: string; draft: ListDraft }) {
  const { field, draft, path, label, onChange } = props;
  if (field.shape.kind !== 'list') return null;
  const { item, max } = field.shape;
  const set = (items: Draft[]) => onChange({ kind: 'list', items });
  return (
    <div role="group" aria-label={label} className="flex flex-col gap-2 border-l border-line pl-3">
      {draft.items.map((itemDraft, index) => {
        const at = pathOf(path, index);
        const name = `${label} ${index + 1}`;
        return (
          <div key={index} className="flex items-start gap-2">
            <span className="num label w-[18px] pt-[7px]">{index + 1}</span>
            <div className="min-w-0 flex-1">
              <Control
                {...props}
                field={item}
                draft={itemDraft}
                path={at}
                label={name}
                required
                onChange={(next) => set(replaced(draft.items, index, next))}
              />
              <Message text={messageAt(props.problems, at)} id={`${controlId(props.form, at)}-problem`} />
            </div>
            <span className="flex gap-2 pt-[5px]">
              <Move label={`Move ${name} up`} mark="↑" disabled={index === 0} onClick={() => set(swapped(draft.items, index, index - 1))} />
              <Move
                label={`Move ${name} down`}
                mark="↓"
                disabled={index === draft.items.length - 1}
                onClick={() => set(swapped(draft.items, index, index + 1))}
              />
              <Remove label={`Remove ${name}`} onClick={() => set(draft.items.filter((_, other) => other !== index))} />
            </span>
          </div>
        );
      })}
      {(max === null || draft.items.length < max) && (
        <Add
          id={controlId(props.form, path)}
          label={`Add item ${draft.items.length + 1} to ${label}`}
          onClick={() => set([...draft.items, blank(item)])}
        >
          Add item {draft.items.length + 1}
        </Add>
      )}
    </div>
  );
}

const swapped = (items: readonly Draft[], a: number, b: number): Draft[] =>
  items.map((item, index) => (index === a ? items[b]! : index === b ? items[a]! : item));

const Move = ({ label, mark, disabled, onClick }: { label: string; mark: string; disabled: boolean; onClick: () => void }) => (
  <button
    type="button"
    className="link text-[12px] disabled:opacity-35"
    aria-label={label}
    title={label}
    disabled={disabled}
    onClick={onClick}
  >
    {mark}
  </button>
);

type ChoiceDraft = Draft & { kind: 'oneOf' };
function ChoiceControl(props: ControlProps & { label: string; draft: ChoiceDraft }) {
  const { field, draft, label, path, problems, onChange } = props;
  const group = useId();
  if (field.shape.kind !== 'oneOf') return null;
  const option = field.shape.options[draft.index]!;
  return (
    <div className="flex flex-col gap-2">
      <fieldset className="flex flex-wrap gap-x-3" aria-label={`Kind of ${label}`}>
        {field.shape.options.map((choice, index) => (
          <label key={index} className="inline-flex items-center gap-1 text-[12px]">
            <input
              type="radio"
              name={group}
              checked={index === draft.index}
              onChange={() => onChange({ kind: 'oneOf', index, draft: blank(choice.field) })}
            />
            {choice.label}
          </label>
        ))}
      </fieldset>
      <Control
        {...props}
        field={option.field}
        draft={draft.draft}
        path={path}
        problems={problems}
        required
        onChange={(next) => onChange({ ...draft, draft: next })}
      />
    </div>
  );
}
