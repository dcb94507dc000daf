import type { NewAlertPreview } from '@palestra/protocol';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useDeferredValue, useState } from 'react';
import { alertPreviewQuery, saveAlert, webhooksQuery } from '../data/alerts.ts';
import { runsQuery } from '../data/queries.ts';
import { plural } from '../format/number.ts';
import { formatAbsolute } from '../format/time.ts';
import { bodyOf, conditionOf, type FormState, isMetric, isShare, opOf, STOPS, SUBJECTS } from './form-state.ts';

interface Props {
  /** Null creates an alert. */
  id: string | null;
  initial: FormState;
  /** Name of the run for the preview; absent: the newest run. */
  run?: string;
  onDone: () => void;
}

function Field({ label, hint, className = '', children }: { label: string; hint?: string; className?: string; children: ReactNode }) {
  return (
    <label className={`flex min-w-0 flex-col gap-[2px] ${className}`} title={hint}>
      <span className="label">{label}</span>
      {children}
    </label>
  );
}

/** Creates or changes an alert, and shows when it would have fired in a run. */
export function AlertForm({ id, initial, run, onDone }: Props) {
  const [form, setForm] = useState(initial);
  const set = (change: Partial<FormState>) => setForm((old) => ({ ...old, ...change }));
  const webhooks = useQuery(webhooksQuery);
  const newest = useQuery(runsQuery(''));
  const environments = [...new Set(newest.data?.runs.flatMap((one) => one.environments))].toSorted();
  const condition = conditionOf(form);
  const save = useMutation({ mutationFn: saveAlert.bind(null, id), onSuccess: onDone });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (condition) save.mutate(bodyOf(form, condition));
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <Field label="Name">
        <input
          className="input"
          data-autofocus
          required
          maxLength={200}
          placeholder="Tool errors of accuse"
          value={form.name}
          onChange={(event) => set({ name: event.target.value })}
        />
      </Field>
      <fieldset className="flex flex-wrap items-end gap-2">
        <legend className="label mb-1 strong">Alert me when</legend>
        <Field label="Figure" className="w-[260px] max-w-full">
          <select className="input" value={form.subject} onChange={(event) => set(subjectChange(event.target.value))}>
            {SUBJECTS.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </Field>
        <ConditionFields form={form} set={set} />
      </fieldset>
      <div className="flex flex-wrap items-end gap-2">
        {form.subject !== 'crashes' && (
          <Field label="Runs" className="min-w-[220px] flex-1" hint="The name of a run; * matches any text.">
            <input
              className="input"
              maxLength={2_000}
              placeholder="All runs, or a name such as grpo-*"
              value={form.runs}
              onChange={(event) => set({ runs: event.target.value })}
            />
          </Field>
        )}
        <Field
          label="Environment"
          className="min-w-[200px] flex-1"
          hint={form.subject === 'crashes' ? 'Only this hosted environment.' : 'Only rollouts of this environment, all variants.'}
        >
          <input
            className="input"
            list="alert-environments"
            maxLength={500}
            placeholder="All environments"
            value={form.environment}
            onChange={(event) => set({ environment: event.target.value })}
          />
          <datalist id="alert-environments">
            {environments.map((environment) => (
              <option key={environment} value={environment} />
            ))}
          </datalist>
        </Field>
        <Field label="Webhook" className="w-[200px]">
          <select className="input" value={form.webhook} onChange={(event) => set({ webhook: event.target.value })}>
            <option value="">Only in these pages</option>
            {webhooks.data?.map((webhook) => (
              <option key={webhook.id} value={webhook.id}>
                {webhook.name}
                {webhook.enabled ? '' : ' (disabled)'}
              </option>
            ))}
          </select>
        </Field>
      </div>
      <label className="flex items-center gap-2">
        <input type="checkbox" className="accent-[var(--accent)]" checked={form.muted} onChange={() => set({ muted: !form.muted })} />
        Muted: record changes without notifications
      </label>
      {form.subject !== 'crashes' && <Preview condition={condition} {...(run !== undefined && { run })} />}
      <p role="alert" className="text-bad empty:hidden">
        {save.error?.message}
      </p>
      <div className="flex gap-2 border-t border-line pt-3">
        <button type="submit" className="button primary" disabled={save.isPending || condition === null}>
          {id === null ? 'Create alert' : 'Save alert'}
        </button>
        <button type="button" className="button" onClick={onDone}>
          Cancel
        </button>
      </div>
    </form>
  );
}

function subjectChange(value: string): Partial<FormState> {
  const subject = SUBJECTS.find((one) => one.value === value)!.value;
  return { subject, op: opOf(subject), ...(subject === 'crashes' && { value: '3' }) };
}

function ConditionFields({ form, set }: { form: FormState; set: (change: Partial<FormState>) => void }) {
  const { subject } = form;
  const number = (key: 'value' | 'steps' | 'minN' | 'margin' | 'minutes', props: { min?: number; max?: number; step?: number | 'any' }) => (
    <input
      className="input num"
      type="number"
      required
      {...props}
      value={form[key]}
      onChange={(event) => set({ [key]: event.target.value })}
    />
  );
  const atLeast = (
    <Field label="Minimum" className="w-[90px]" hint="Skips steps with fewer rollouts. For tool errors: with fewer tool results.">
      {number('minN', { min: 1, step: 1 })}
    </Field>
  );
  if (subject === 'silence')
    return (
      <>
        <Field label="Minutes" className="w-[90px]">
          {number('minutes', { min: 1, max: 1_440, step: 1 })}
        </Field>
        <p className="max-w-[64ch] basis-full text-ink-3">
          Fires once in each silence. The end of a run is no alert if the run is marked as finished: by its trainer (
          <code>palestra runs finish</code>) or on the page Config. Without the mark, a run is over after 24 hours without news.
        </p>
      </>
    );
  if (subject === 'count')
    return (
      <>
        <Field label="Query" className="min-w-[200px] flex-1" hint="Keys of the query language, such as stop:timeout or tool.error:bash.">
          <input className="input mono" required maxLength={2_000} value={form.q} onChange={(event) => set({ q: event.target.value })} />
        </Field>
        <Field label="More than" className="w-[90px]">
          {number('value', { min: 0, max: 10_000, step: 1 })}
        </Field>
        <Field label="Within (minutes)" className="w-[110px]">
          {number('minutes', { min: 1, max: 1_440, step: 1 })}
        </Field>
      </>
    );
  if (subject === 'crashes')
    return (
      <>
        <Field label="Failed instances" className="w-[110px]" hint="Of one version, at least.">
          {number('value', { min: 1, max: 100, step: 1 })}
        </Field>
        <Field label="Within (minutes)" className="w-[110px]">
          {number('minutes', { min: 1, max: 1_440, step: 1 })}
        </Field>
        <p className="max-w-[64ch] basis-full text-ink-3">
          Fires when instances of a version fail again and again, and is resolved when they no longer do. Alerts on runs do not see this:
          sessions wait while no instance runs.
        </p>
      </>
    );
  if (subject === 'baseline')
    return (
      <>
        <Field label="Baseline run" className="min-w-[200px] flex-1">
          <input className="input" required value={form.baseline} onChange={(event) => set({ baseline: event.target.value })} />
        </Field>
        <Field label="By more than" className="w-[110px]" hint="Fires if the whole 95 % interval of the difference is below this value.">
          {number('margin', { min: 0, step: 'any' })}
        </Field>
        {atLeast}
      </>
    );
  return (
    <>
      {subject === 'tool_error' && (
        <Field label="Tool" className="w-[140px]">
          <input
            className="input mono"
            maxLength={200}
            placeholder="All tools"
            value={form.tool}
            onChange={(event) => set({ tool: event.target.value })}
          />
        </Field>
      )}
      {subject === 'stop_share' && (
        <Field label="Stop reason" className="w-[150px]">
          <select
            className="input"
            value={form.stop}
            onChange={(event) => set({ stop: STOPS.find((stop) => stop === event.target.value)! })}
          >
            {STOPS.map((stop) => (
              <option key={stop}>{stop}</option>
            ))}
          </select>
        </Field>
      )}
      <Field label="Condition" className="w-[90px]">
        <select className="input" value={form.op} onChange={(event) => set({ op: event.target.value === 'above' ? 'above' : 'below' })}>
          <option value="above">Above</option>
          <option value="below">Below</option>
        </select>
      </Field>
      <Field label={isShare(subject) ? 'Percentage' : 'Reward'} className="w-[90px]">
        {number('value', isShare(subject) ? { min: 0, max: 100, step: 'any' } : { step: 'any' })}
      </Field>
      <Field label="Steps" className="w-[90px]" hint="Computes the figure over this number of steps.">
        {number('steps', { min: 1, max: 50, step: 1 })}
      </Field>
      {isMetric(subject) && atLeast}
    </>
  );
}

const MAX_SHOWN = 8;

/** When the alert would have fired, judged on the server by the same code. */
function Preview({ condition, run }: { condition: ReturnType<typeof conditionOf>; run?: string }) {
  const newest = useQuery({ ...runsQuery(''), enabled: run === undefined });
  const [typed, setTyped] = useState<string | null>(null);
  const name = typed ?? run ?? newest.data?.runs[0]?.name ?? '';
  const body = useDeferredValue(condition && name !== '' ? JSON.stringify({ run: name, condition }) : null);
  const preview = useQuery({
    ...alertPreviewQuery(body === null ? { run: '', condition: { kind: 'silence', minutes: 1 } } : (JSON.parse(body) as NewAlertPreview)),
    enabled: body !== null,
  });
  const found = body === null ? undefined : preview.data;
  return (
    <section aria-label="Preview" className="flex flex-col gap-2 rounded-[4px] bg-paper-1 p-3">
      <Field label="Try it on this run">
        <input className="input" value={name} onChange={(event) => setTyped(event.target.value)} />
      </Field>
      <div aria-live="polite" className="min-h-[40px]">
        {body === null ? (
          <p className="text-ink-3">Fill in the condition to see when it would have fired.</p>
        ) : preview.error ? (
          <p className="text-bad">{preview.error.message}</p>
        ) : found === undefined ? (
          <p className="text-ink-3">Checking the run…</p>
        ) : (
          <>
            <p className="strong">
              {found.fired === 0
                ? 'Would not have fired in this run.'
                : `Would have fired ${found.fired === 1 ? 'once' : `${found.fired} times`} in this run.`}
            </p>
            <p className="text-ink-3">
              {plural(found.judged, condition?.kind === 'count' || condition?.kind === 'silence' ? 'moment' : 'step')} checked
              {found.skipped > 0 && `, ${plural(found.skipped, 'step')} skipped because they have too few rollouts`}
              {found.incomplete && '; only the newest part of the run was checked'}.
            </p>
            {found.fires.length > 0 && (
              <ul className="mt-1 flex flex-col">
                {found.fires.slice(-MAX_SHOWN).map(({ step, at, evidence }) => (
                  <li key={`${step} ${at}`} className="flex gap-2">
                    <span className="min-w-[64px] flex-none tabular-nums text-ink-3">
                      {step === null ? formatAbsolute(at) : `Step ${step}`}
                    </span>
                    <span className="min-w-0">{evidence.text}</span>
                  </li>
                ))}
              </ul>
            )}
          </>
        )}
      </div>
    </section>
  );
}
