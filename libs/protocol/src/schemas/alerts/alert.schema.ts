import { z } from 'zod';
import { ALERT_METRICS, KNOWN_PHASES, STOP_REASONS } from '../../vocabularies.ts';

const text = (max: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(max)
    .refine((value) => !value.includes('\0'), 'must not contain the character U+0000');
const phase = z.enum(KNOWN_PHASES).nullable().default(null).describe('Null: the phase with the most rollouts.');
const minN = z
  .number()
  .int()
  .min(1)
  .max(1_000_000)
  .default(20)
  .describe('Steps with fewer counted rollouts (tool results, for `tool_error`) are not judged.');

const environment = text(500)
  .nullable()
  .default(null)
  .describe('Only rollouts of this environment, all variants; null: every environment.');

const metricConditionSchema = z
  .strictObject({
    kind: z.literal('metric'),
    metric: z.enum(ALERT_METRICS),
    tool: text(200).nullable().default(null).describe('Of `tool_error`: the tool; null: all tools.'),
    stop: z.enum(STOP_REASONS).nullable().default(null).describe('Of `stop_share`: the stop reason.'),
    op: z.enum(['above', 'below']),
    value: z.number().describe('A reward, or a share from 0 to 1.'),
    steps: z
      .number()
      .int()
      .min(1)
      .max(50)
      .default(1)
      .describe('The figure of this number of steps together, of which the judged one is the last.'),
    phase,
    min_n: minN,
    environment,
  })
  .refine(({ metric, stop }) => (metric === 'stop_share') === (stop !== null), { message: 'expected for stop_share only', path: ['stop'] })
  .refine(({ metric, tool }) => metric === 'tool_error' || tool === null, { message: 'expected for tool_error only', path: ['tool'] })
  .refine(({ metric, value }) => metric === 'reward_mean' || (value >= 0 && value <= 1), { message: 'expected 0 to 1', path: ['value'] });

const baselineConditionSchema = z.strictObject({
  kind: z.literal('baseline'),
  run: text(2_000).describe('Id or name of the baseline run. Answers have its id.'),
  margin: z
    .number()
    .min(0)
    .max(1e9)
    .default(0)
    .describe('The whole 95 % interval of the difference of the mean rewards at a step is below minus this.'),
  phase,
  min_n: minN,
  environment,
});

const countConditionSchema = z.strictObject({
  kind: z.literal('count'),
  q: text(2_000).describe('A query of rollouts (docs/query.md), without regexes and quoted texts.'),
  minutes: z.number().int().min(1).max(1_440).describe('The window: rollouts that arrived in the last minutes.'),
  value: z.number().int().min(0).max(10_000).describe('More rollouts than this.'),
  environment,
});

const silenceConditionSchema = z.strictObject({
  kind: z.literal('silence'),
  minutes: z.number().int().min(1).max(1_440).describe('No event of the run arrived for this time, and the run is not marked as finished.'),
  environment,
});

const crashesConditionSchema = z.strictObject({
  kind: z.literal('crashes'),
  count: z.number().int().min(1).max(100).default(3).describe('At least this number of instances of one version failed.'),
  minutes: z.number().int().min(1).max(1_440).default(10).describe('The window: instances that failed in the last minutes.'),
  environment: text(500).nullable().default(null).describe('Only this hosted environment; null: every one of the organisation.'),
});

export const alertConditionSchema = z.discriminatedUnion('kind', [
  metricConditionSchema,
  baselineConditionSchema,
  countConditionSchema,
  silenceConditionSchema,
  crashesConditionSchema,
]);
export type AlertCondition = z.infer<typeof alertConditionSchema>;
export type MetricCondition = z.infer<typeof metricConditionSchema>;
export type BaselineCondition = z.infer<typeof baselineConditionSchema>;
export type CountCondition = z.infer<typeof countConditionSchema>;
export type CrashesCondition = z.infer<typeof crashesConditionSchema>;
export type SilenceCondition = z.infer<typeof silenceConditionSchema>;

export const alertBodySchema = z.strictObject({
  name: text(200),
  runs: text(2_000).nullable().default(null).describe('Name of the runs; `*` stands for any text. Null: every run of the organisation.'),
  condition: alertConditionSchema,
  webhook: z.uuid().nullable().default(null),
  muted: z.boolean().default(false).describe('Records changes without notifications.'),
});
export type AlertBody = z.infer<typeof alertBodySchema>;
/** As a client sends it. */
export type NewAlert = z.input<typeof alertBodySchema>;

export const alertEvidenceSchema = z.object({
  text: z.string().describe('The finding as a sentence.'),
  value: z.number().nullable(),
  threshold: z.number(),
  n: z.number().nullable().describe('What the value counts.'),
  low: z.number().nullable().describe('95 % interval of the value.'),
  high: z.number().nullable(),
  from_step: z.number().nullable(),
  step: z.number().nullable(),
  q: z.string().nullable().describe('Query of the rollouts that show it.'),
  baseline: z.string().nullable().describe('Id of the baseline run.'),
});
export type AlertEvidence = z.infer<typeof alertEvidenceSchema>;

const alertRunSchema = z.object({ id: z.string(), name: z.string() });
/** What the alert fires in. */
const alertSubject = {
  run: alertRunSchema.nullable().describe('Null: it is about a hosted environment.'),
  environment: z.string().nullable().describe('`owner/name` of a hosted environment; null: it is about a run.'),
};
const firingSchema = z.object({ ...alertSubject, since: z.string(), evidence: alertEvidenceSchema });

export const alertSchema = z.object({
  id: z.string(),
  name: z.string(),
  runs: z.string().nullable(),
  condition: alertConditionSchema,
  condition_text: z.string(),
  webhook: z.string().nullable(),
  muted: z.boolean(),
  author: z.string(),
  created_at: z.string(),
  firing: z.array(firingSchema).describe('Runs and environments in which it fires; the newest 20.'),
});
export type Alert = z.infer<typeof alertSchema>;
export const alertListSchema = z.object({ alerts: z.array(alertSchema) });
export type AlertList = z.infer<typeof alertListSchema>;

export const alertEventSchema = z.object({
  id: z.string(),
  alert: z.object({ id: z.string(), name: z.string() }),
  ...alertSubject,
  kind: z.enum(['firing', 'resolved']),
  at: z.string(),
  muted: z.boolean(),
  unread: z.boolean(),
  evidence: alertEvidenceSchema,
});
export type AlertEvent = z.infer<typeof alertEventSchema>;
export const alertEventQuerySchema = z.object({
  alert: z.uuid().optional(),
  run: z.string().max(2_000).optional().describe('Id or name.'),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(200).optional().describe('`next` of the previous page.'),
});
export type AlertEventQuery = z.infer<typeof alertEventQuerySchema>;
export const alertEventListSchema = z.object({
  events: z.array(alertEventSchema),
  unread: z.number().describe('Events that the member has not read, without those of muted alerts; at most 100.'),
  next: z.string().nullable(),
});
export type AlertEventList = z.infer<typeof alertEventListSchema>;
export const runAlertsSchema = z.object({
  firing: z.array(z.object({ alert: z.object({ id: z.string(), name: z.string() }), since: z.string(), evidence: alertEvidenceSchema })),
});
export type RunAlerts = z.infer<typeof runAlertsSchema>;
export const readAlertEventsSchema = z.strictObject({ until: z.uuid().describe('Id of the newest event that was shown.') });
export type ReadAlertEvents = z.infer<typeof readAlertEventsSchema>;
export const unreadAlertEventsSchema = z.object({ unread: z.number() });
export type UnreadAlertEvents = z.infer<typeof unreadAlertEventsSchema>;

export const alertPreviewBodySchema = z.strictObject({
  run: z.string().min(1).max(2_000).describe('Id or name.'),
  condition: alertConditionSchema,
});
export type AlertPreviewBody = z.infer<typeof alertPreviewBodySchema>;
export type NewAlertPreview = z.input<typeof alertPreviewBodySchema>;
export const alertPreviewSchema = z.object({
  condition_text: z.string(),
  judged: z.number().describe('Steps, or rollouts, that were judged.'),
  skipped: z.number().describe('Steps with too few rollouts.'),
  firing_now: z.boolean(),
  fires: z
    .array(z.object({ step: z.number().nullable(), at: z.string().nullable(), evidence: alertEvidenceSchema }))
    .describe('When the alert would have started to fire; the last 100.'),
  fired: z.number(),
  incomplete: z.boolean().describe('Only the newest part of the run was judged.'),
});
export type AlertPreview = z.infer<typeof alertPreviewSchema>;
