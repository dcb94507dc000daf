import { z } from 'zod';
import { openSessionSchema } from './session.schema.ts';

/** Bodies and answers of `/v1/text-sessions`. The socket has the same. */

const { environment, variant, task_spec, split, index, secrets, run, sid } = openSessionSchema.shape;

const messageSchema = z.looseObject({ role: z.string() });
const promptSchema = z
  .union([z.array(messageSchema), z.string()], { error: 'a prompt is a list of messages, or the JSON text of one' })
  .describe('A list of messages, or its JSON text; returned as a list. Default: built from the task and its tools, as SkyRL does.');
const parseSchema = z
  .enum(['tool_call', 'action'])
  .describe('The part of a text that is parsed: the first `<tool_call>` with JSON, or the last `<action>`.');
const MAX_TURNS = 1_000_000;

export const openTextSchema = z
  .strictObject({
    environment,
    variant,
    task_spec,
    split,
    index,
    prompt: promptSchema.nullish(),
    parse: parseSchema.default('tool_call'),
    max_turns: z.int().min(1).max(MAX_TURNS).optional().describe('Default: 10 with `tool_call`, 1 with `action`, as in SkyRL.'),
    toolset: z.string().min(1).max(500).nullish(),
    secrets,
    recording: run,
    id: sid,
  })
  .refine(
    (body) =>
      'task_spec' in body ? body.split === undefined && body.index === undefined : body.split !== undefined && body.index !== undefined,
    {
      error: 'name the task: either task_spec, or split and index',
      path: ['task_spec'],
    },
  );
export type OpenText = z.output<typeof openTextSchema>;
export type TextParse = OpenText['parse'];

/** A step that takes longer is answered by `turn_running`; the client repeats it. */
const DEFAULT_WAIT_S = 120;
const MAX_WAIT_S = 3_600;

export const textStepSchema = z.strictObject({
  text: z.string().describe('Text of the model.'),
  turn: z
    .int()
    .min(1)
    .max(MAX_TURNS)
    .nullish()
    .describe('Number of the turn, from 1. With it the request can be repeated. Default: the next turn.'),
  wait_s: z.number().min(0).max(MAX_WAIT_S).default(DEFAULT_WAIT_S).describe('A longer turn is answered by `turn_running`.'),
});
export type TextStepBody = z.output<typeof textStepSchema>;

const observationSchema = z.object({ role: z.literal('user'), content: z.string() });

export const textSessionSchema = z.object({
  id: z.string(),
  prompt: z.array(messageSchema),
  metadata: z.record(z.string(), z.unknown()),
  max_turns: z.number(),
  tools: z.array(z.looseObject({ name: z.string() })),
});
export const textStepViewSchema = z.object({
  turn: z.number(),
  observations: z.array(observationSchema),
  reward: z.number(),
  done: z.boolean(),
  metadata: z.record(z.string(), z.unknown()),
});
export const textMetricsSchema = z.object({
  turns: z.number(),
  total_reward: z.number(),
  num_rewards: z.number().describe('Calls that ran or failed, without texts that contain no call.'),
});
export const textSessionViewSchema = z.object({
  id: z.string(),
  environment: z.string(),
  parse: parseSchema,
  max_turns: z.number(),
  turns: z.number(),
  done: z.boolean(),
});
export const textClosedSchema = z.object({ id: z.string() });
