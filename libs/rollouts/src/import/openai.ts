import { isObject, type JsonObject } from '@palestra/protocol';
import { chatMessages, chatProblem } from './chat-messages.ts';
import { digestOf, eventsOf, type Imported, type ImportOptions, type RolloutDraft } from './imported.ts';
import { compact, first, intOf, listOf, objectOf, rewardNumber, textOf, timeOf } from './json-fields.ts';
import { eachLine, RecordError } from './json-lines.ts';

/**
 * OpenAI messages as JSON lines. A record is `{"messages": [...]}`, `prompt` and `completion` as lists of messages (TRL), or a logged
 * request with its answer (`messages` or `request` beside `choices` or `response`). Several `choices` or `samples` of a record are
 * samples of one group. Known keys (`reward`, `step`, `group`, ...) become fields; others stay in the metadata.
 */
export function importOpenai(bytes: AsyncIterable<Uint8Array>, options: ImportOptions): AsyncGenerator<Imported> {
  return eachLine(bytes, (record, { number, text }) => {
    const samples = samplesOf(record);
    const digest = digestOf(text);
    return samples.map((sample, index) => {
      const where = samples.length > 1 ? `line ${number}, sample ${index}` : `line ${number}`;
      const group =
        samples.length > 1 ? { group_id: `line-${number}-${digest.slice(0, 12)}`, sample_idx: index, n_samples: samples.length } : {};
      const draft = draftOf(sample, ['openai', number, digest, index], group);
      return { where, events: eventsOf(draft, options) };
    });
  });
}

/** Keys that become fields. Other keys become metadata. */
const KNOWN = new Set(
  (
    'messages prompt completion completions choices samples rewards request response reward score total_reward final_reward reward_total step ' +
    'global_step training_step task task_spec task_index task_id environment env split group group_id prompt_id uid sample sample_idx rollout_idx ' +
    'model metadata error stop_reason finish_reason finished done is_truncated truncated timestamp created created_at name id custom_id phase'
  ).split(' '),
);
/** Finish reasons of a limit: the episode did not end by itself. */
const CUT = new Set(['length', 'max_tokens', 'max_turns', 'context_length', 'timeout', 'aborted', 'cancelled']);
/** The stop reason that a finish reason of a single completion implies; `tool_calls` implies none. */
const STOPS = new Set(['stop', 'length', 'content_filter']);

/** Splits a record into one record per sample. */
function samplesOf(record: JsonObject): JsonObject[] {
  const request = objectOf(record.request);
  const response = objectOf(record.response);
  const answer = isObject(response.body) ? response.body : response;
  const prompt =
    first(listOrNone, record.messages, record.prompt, request.messages, objectOf(request.body).messages) ?? spoken(record.prompt);
  const shared = { model: first(textOf, answer.model, request.model), created: answer.created, ...record };
  const choices = first(listOrNone, record.choices, answer.choices);
  if (choices !== undefined && choices.length > 0) {
    return choices.map((choice, index) => {
      const { message, finish_reason: finish } = objectOf(choice);
      return compactRecord({
        finish_reason: finish,
        ...shared,
        messages: [...prompt, ...(isObject(message) ? [message] : [])],
        ...rewardAt(record, index),
      });
    });
  }
  if (Array.isArray(record.samples) && record.samples.length > 0) {
    return record.samples.map((sample: unknown, index) => {
      const part = Array.isArray(sample) ? { completion: sample } : objectOf(sample);
      return { ...shared, ...rewardAt(record, index), ...part, messages: messagesOf(part, prompt) };
    });
  }
  if (Array.isArray(record.completions) && record.completions.length > 0) {
    return record.completions.map((completion: unknown, index) => ({
      ...shared,
      ...rewardAt(record, index),
      messages: messagesOf({ completion }, prompt),
    }));
  }
  return [compactRecord({ ...shared, messages: messagesOf(record, prompt) })];
}

const listOrNone = (value: unknown): unknown[] | undefined => (Array.isArray(value) ? value : undefined);
/** A prompt that is one text. */
const spoken = (prompt: unknown): JsonObject[] => (typeof prompt === 'string' ? [{ role: 'user', content: prompt }] : []);
const compactRecord = (record: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined && value !== null));
const rewardAt = (record: JsonObject, index: number): JsonObject => {
  const reward = rewardNumber(listOf(record.rewards)[index]);
  return reward === undefined ? {} : { reward };
};

/** The whole conversation of a sample: its messages, or the prompt with its completion (a list, or the text of one answer). */
function messagesOf(sample: JsonObject, prompt: readonly unknown[]): unknown[] {
  if (Array.isArray(sample.messages)) return sample.messages;
  const start = Array.isArray(sample.prompt) ? sample.prompt : typeof sample.prompt === 'string' ? spoken(sample.prompt) : prompt;
  const { completion } = sample;
  if (Array.isArray(completion)) return [...start, ...(completion as unknown[])];
  return typeof completion === 'string' ? [...start, { role: 'assistant', content: completion }] : [...start];
}

function draftOf(record: JsonObject, key: readonly unknown[], group: JsonObject): RolloutDraft {
  const problem = chatProblem(record.messages);
  if (problem !== null) throw new RecordError(problem);
  const messages = chatMessages(listOf(record.messages));
  if (messages.length === 0) throw new RecordError('The record has no messages.');
  const failed = hasError(record.error);
  const reward = first(rewardNumber, record.reward, record.score, record.total_reward, record.final_reward, record.reward_total) ?? null;
  const finish = textOf(record.finish_reason);
  const stop = failed ? 'infra_error' : (textOf(record.stop_reason) ?? (finish !== undefined && STOPS.has(finish) ? finish : undefined));
  const cut = record.is_truncated === true || record.truncated === true || record.finished === false || record.done === false;
  const at = first(timeOf, record.timestamp, record.created_at, record.created);
  return {
    key,
    ...(at === undefined ? {} : { at }),
    start: {
      ...startFields(record),
      metadata: compact({
        ...Object.fromEntries(Object.entries(record).filter(([name]) => !KNOWN.has(name))),
        ...objectOf(record.metadata),
        ...group,
        ...groupFields(record),
        stop_reason: stop,
        finish_reason: finish,
        error: failed ? record.error : undefined,
        source_reward: failed && reward !== null ? reward : undefined,
        imported_from: 'openai',
      }),
    },
    messages,
    reward: failed ? null : reward,
    finished: !failed && !cut && (stop === undefined || !CUT.has(stop)),
  };
}

const hasError = (error: unknown): boolean => error !== undefined && error !== null && error !== false && error !== '';

function groupFields(record: JsonObject): JsonObject {
  const id = [record.group_id, record.group, record.prompt_id, record.uid].find(
    (value) => typeof value === 'string' || typeof value === 'number',
  );
  return compact({
    group_id: id === undefined ? undefined : String(id),
    sample_idx: first(intOf, record.sample_idx, record.sample, record.rollout_idx),
    phase: textOf(record.phase),
  });
}

function startFields(record: JsonObject): RolloutDraft['start'] {
  const { task } = record;
  const step = first(intOf, record.step, record.global_step, record.training_step);
  const index = first(intOf, record.task_index, record.task_id, task);
  const spec = isObject(record.task_spec) ? record.task_spec : isObject(task) ? task : undefined;
  const named = first(textOf, task, record.task_id);
  const name = first(textOf, record.name, record.id, record.custom_id);
  const environment = first(textOf, record.environment, record.env);
  const split = textOf(record.split);
  const model = textOf(record.model);
  return {
    ...(step === undefined ? {} : { step }),
    ...(environment === undefined ? {} : { environment }),
    ...(split === undefined ? {} : { split }),
    ...(name === undefined ? {} : { rolloutName: name }),
    ...(spec !== undefined ? { task_spec: spec } : named !== undefined ? { task_spec: { task: named } } : {}),
    ...(model === undefined ? {} : { run_info: { model_name: model } }),
    ...(index === undefined ? {} : { rollout_info: { task_index: index } }),
  };
}
