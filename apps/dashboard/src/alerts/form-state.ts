import {
  type Alert,
  ALERT_METRICS,
  type AlertCondition,
  type AlertMetric,
  type KnownPhase,
  type NewAlert,
  STOP_REASONS,
  type StopReason,
} from '@palestra/protocol';

/** What an alert watches, as the form names it: a figure of a step, or another kind of condition. */
export const SUBJECTS = [
  { value: 'reward_mean', label: 'Mean reward of a step' },
  { value: 'success', label: 'Success rate of a step' },
  { value: 'tool_error', label: 'Tool errors of a step' },
  { value: 'stop_share', label: 'Share of a stop reason' },
  { value: 'failed', label: 'Failures not caused by the policy' },
  { value: 'truncated', label: 'Truncated rollouts' },
  { value: 'baseline', label: 'Reward below a baseline run' },
  { value: 'count', label: 'Rollouts that match a query' },
  { value: 'silence', label: 'No new rollout for some time' },
  { value: 'crashes', label: 'Hosted environment keeps crashing' },
] as const satisfies readonly { value: AlertMetric | 'baseline' | 'count' | 'silence' | 'crashes'; label: string }[];
export type Subject = (typeof SUBJECTS)[number]['value'];

export const isMetric = (subject: Subject): subject is AlertMetric => ALERT_METRICS.some((metric) => metric === subject);
/** Shares are entered as percentages. */
export const isShare = (subject: Subject): boolean => isMetric(subject) && subject !== 'reward_mean';

/** The direction that is usually bad. */
export const opOf = (subject: Subject): 'above' | 'below' => (subject === 'reward_mean' || subject === 'success' ? 'below' : 'above');

/** The fields of the form. Numbers are texts while they are typed. */
export interface FormState {
  name: string;
  runs: string;
  /** Empty: every environment. */
  environment: string;
  subject: Subject;
  op: 'above' | 'below';
  value: string;
  tool: string;
  stop: StopReason;
  steps: string;
  minN: string;
  baseline: string;
  margin: string;
  q: string;
  minutes: string;
  phase: KnownPhase | null;
  webhook: string;
  muted: boolean;
}

const EMPTY: FormState = {
  name: '',
  runs: '',
  environment: '',
  subject: 'reward_mean',
  op: 'below',
  value: '',
  tool: '',
  stop: 'max_tokens',
  steps: '1',
  minN: '20',
  baseline: '',
  margin: '0',
  q: '',
  minutes: '10',
  phase: null,
  webhook: '',
  muted: false,
};

export const newForm = (given: Partial<FormState> = {}): FormState => ({ ...EMPTY, ...given });

/** `baselineName`: of the run that the condition has by its id. */
export function formOf({ name, runs, condition, webhook, muted }: Alert, baselineName?: string): FormState {
  return newForm({
    name,
    runs: runs ?? '',
    environment: condition.environment ?? '',
    webhook: webhook ?? '',
    muted,
    ...fieldsOf(condition, baselineName),
  });
}

function fieldsOf(condition: AlertCondition, baselineName?: string): Partial<FormState> {
  switch (condition.kind) {
    case 'metric': {
      const { metric, op, value, tool, stop, steps, min_n, phase } = condition;
      const shown = metric === 'reward_mean' ? value : Number((value * 100).toPrecision(12));
      return {
        subject: metric,
        op,
        value: String(shown),
        tool: tool ?? '',
        stop: stop ?? EMPTY.stop,
        steps: String(steps),
        minN: String(min_n),
        phase,
      };
    }
    case 'baseline':
      return {
        subject: 'baseline',
        baseline: baselineName ?? condition.run,
        margin: String(condition.margin),
        minN: String(condition.min_n),
        phase: condition.phase,
      };
    case 'count':
      return { subject: 'count', q: condition.q, value: String(condition.value), minutes: String(condition.minutes) };
    case 'silence':
      return { subject: 'silence', minutes: String(condition.minutes) };
    case 'crashes':
      return { subject: 'crashes', value: String(condition.count), minutes: String(condition.minutes) };
  }
}

/** The condition; null while a field is empty. The server checks the values. */
export function conditionOf(form: FormState): NewAlert['condition'] | null {
  const { subject, op, tool, stop, phase } = form;
  const value = numberOf(form.value);
  const steps = numberOf(form.steps);
  const minN = numberOf(form.minN);
  const margin = numberOf(form.margin);
  const minutes = numberOf(form.minutes);
  const environment = form.environment.trim() === '' ? null : form.environment.trim();
  if (isMetric(subject)) {
    if (value === null || steps === null || minN === null) return null;
    return {
      kind: 'metric',
      metric: subject,
      tool: subject === 'tool_error' && tool.trim() !== '' ? tool.trim() : null,
      stop: subject === 'stop_share' ? stop : null,
      op,
      value: isShare(subject) ? value / 100 : value,
      steps,
      phase,
      min_n: minN,
      environment,
    };
  }
  if (subject === 'baseline') {
    if (form.baseline.trim() === '' || margin === null || minN === null) return null;
    return { kind: 'baseline', run: form.baseline.trim(), margin, phase, min_n: minN, environment };
  }
  if (minutes === null) return null;
  if (subject === 'crashes') return value === null ? null : { kind: 'crashes', count: value, minutes, environment };
  if (subject === 'silence') return { kind: 'silence', minutes, environment };
  return form.q.trim() === '' || value === null ? null : { kind: 'count', q: form.q.trim(), minutes, value, environment };
}

const numberOf = (text: string): number | null => (text.trim() === '' || !Number.isFinite(Number(text)) ? null : Number(text));

export const bodyOf = (form: FormState, condition: NewAlert['condition']): NewAlert => ({
  name: form.name.trim(),
  // A hosted environment is in no run.
  runs: form.runs.trim() === '' || condition.kind === 'crashes' ? null : form.runs.trim(),
  condition,
  webhook: form.webhook === '' ? null : form.webhook,
  muted: form.muted,
});

export const STOPS = STOP_REASONS.filter((stop) => stop !== 'unknown');
