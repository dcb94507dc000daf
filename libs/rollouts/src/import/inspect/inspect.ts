import { isObject, type JsonObject } from '@palestra/protocol';
import { chatMessages, chatProblem } from '../chat-messages.ts';
import { eventsOf, type Imported, type ImportOptions, type RolloutDraft } from '../imported.ts';
import { Archive, type ArchiveLimits } from './inspect-archive.ts';
import { compact, first, intOf, listOf, numberOf, objectOf, textOf, timeOf } from '../json-fields.ts';
import { attempt, readJson, RecordError } from '../json-lines.ts';

export interface InspectOptions extends ImportOptions {
  /** The score that is the reward, or `score.key` for one of its values. Default: the first scorer of the task. */
  scorer?: string;
  limits?: ArchiveLimits;
}

/**
 * A `.eval` log of Inspect AI (github.com/UKGovernmentBEIS/inspect_ai, schema version 2): one rollout for each sample and epoch, one
 * sample in memory at a time. The log of a crashed run has no header; its journal is read instead.
 */
export async function* importInspectArchive(path: string, options: InspectOptions): AsyncGenerator<Imported> {
  const archive = await Archive.open(path, options.limits);
  try {
    const { names } = archive;
    const head = names.includes('header.json') ? 'header.json' : '_journal/start.json';
    if (!names.includes(head)) throw new RecordError('The archive is no Inspect log: it has neither header.json nor _journal/start.json.');
    const log = objectOf(readJson(await archive.text(head)));
    for (const name of names.filter((entry) => /^samples\/.+\.json$/.test(entry))) {
      try {
        const sample = readJson(await archive.text(name));
        yield* attempt(name, () => [{ where: name, events: eventsOf(draftOf(log, sample, options), options) }]);
      } catch (error) {
        if (!(error instanceof RecordError || error instanceof SyntaxError)) throw error;
        yield { where: name, problem: error.message };
      }
    }
  } finally {
    archive.close();
  }
}

/** A `.json` log of Inspect: one document, wholly in memory. Throws `RecordError` for other files. */
export function* importInspectJson(text: string, options: InspectOptions): Generator<Imported> {
  const log = jsonLog(text);
  const samples = listOf(log.samples);
  for (const [index, sample] of samples.entries()) {
    const where = `sample ${index}`;
    yield* attempt(where, () => [{ where, events: eventsOf(draftOf(log, sample, options), options) }]);
  }
}

function jsonLog(text: string): JsonObject {
  let log: unknown;
  try {
    log = readJson(text);
  } catch (error) {
    throw new RecordError(`Not valid JSON: ${(error as Error).message}`, { cause: error });
  }
  if (!isObject(log) || !isObject(log.eval)) throw new RecordError('The file is no Inspect log: it has no "eval".');
  return log;
}

/** Letters of Inspect's scorers, as `value_to_float` converts them. */
const LETTERS: Record<string, number> = { C: 1, P: 0.5, I: 0, N: 0 };
const WORDS: Record<string, number> = { yes: 1, true: 1, no: 0, false: 0 };
/** Limits of a sample (`EvalSampleLimit.type`) as stop reasons. */
const LIMITS: Record<string, string> = {
  message: 'max_turns',
  turn: 'max_turns',
  token: 'max_tokens',
  context: 'context_length',
  time: 'timeout',
  working: 'timeout',
  cost: 'max_tokens',
  operator: 'cancelled',
  custom: 'aborted',
};

function draftOf(log: JsonObject, value: unknown, options: InspectOptions): RolloutDraft {
  if (!isObject(value)) throw new RecordError('The sample must be an object.');
  const sample = withAttachments(value);
  const problem = chatProblem(sample.messages);
  if (problem !== null) throw new RecordError(problem);
  const info = objectOf(log.eval);
  const messages = chatMessages(listOf(sample.messages).map((message) => timed(objectOf(message), timesOf(sample))));
  if (messages.length === 0) throw new RecordError('The sample has no messages.');
  const failed = isObject(sample.error);
  const score = failed ? NOT_SCORED : scoreOf(objectOf(sample.scores), info, options.scorer);
  const limit = textOf(objectOf(sample.limit).type);
  const epoch = intOf(sample.epoch) ?? 1;
  return {
    key: ['inspect', info.eval_id ?? info.run_id ?? info.task_id, sample.id, epoch],
    at: timeOf(sample.started_at) ?? timeOf(info.created),
    start: startOf(info, sample, {
      // Sample ids are unique in a data set only, so the group also has the id of the log.
      group_id: [textOf(info.eval_id), String(sample.id)].filter(Boolean).join(':'),
      sample_idx: epoch - 1,
      n_samples: intOf(objectOf(info.config).epochs),
      phase: 'eval',
      scores: Object.fromEntries(
        Object.entries(objectOf(sample.scores)).map(([name, one]) => [name, compact({ ...objectOf(one), history: undefined })]),
      ),
      scorer: score.name,
      stop_reason: failed ? 'infra_error' : limit === undefined ? modelStop(sample) : (LIMITS[limit] ?? 'aborted'),
      error: failed ? compact({ message: objectOf(sample.error).message, traceback: objectOf(sample.error).traceback }) : undefined,
      limit: sample.limit,
      tokens: tokensOf(objectOf(sample.model_usage)),
      imported_from: 'inspect',
    }),
    messages,
    // The score of a failed sample (`score_on_error`) stays in the metadata, because an error is not a 0.
    reward: score.value,
    finished: !failed && limit === undefined,
  };
}

function startOf(info: JsonObject, sample: JsonObject, metadata: JsonObject): RolloutDraft['start'] {
  // An evaluation of a hosted environment names it (`owner/name`) and its split in its arguments, its metadata or those of the sample.
  const about = [objectOf(sample.metadata), objectOf(info.metadata), objectOf(info.task_args)];
  const task = first(textOf, ...about.map(({ environment }) => environment), info.task_registry_name, info.task);
  const split = first(textOf, ...about.map((fields) => fields.split));
  const model = first(textOf, info.model, objectOf(sample.output).model);
  const index = listOf(objectOf(info.dataset).sample_ids).indexOf(sample.id);
  const duration = numberOf(sample.total_time);
  return {
    ...(task === undefined ? {} : { environment: task }),
    ...(split === undefined ? {} : { split }),
    rolloutName: `${textOf(info.task) ?? 'inspect'}-${String(sample.id)}-${intOf(sample.epoch) ?? 1}`,
    task_spec: compact({ id: sample.id, input: sample.input, choices: sample.choices, target: sample.target, metadata: sample.metadata }),
    run_info: compact({
      model_name: model,
      run_type: 'eval',
      framework: 'inspect_ai',
      framework_version: textOf(objectOf(info.packages).inspect_ai),
    }),
    rollout_info: compact({
      task_index: index === -1 ? intOf(sample.id) : index,
      duration_ms: duration === undefined ? undefined : Math.round(duration * 1000),
      temperature: numberOf(objectOf(info.model_generate_config).temperature),
      env_version: info.task_version === undefined ? undefined : String(info.task_version),
    }),
    metadata: compact({ ...metadata, eval_id: info.eval_id, task_id: info.task_id, sample_uuid: sample.uuid, tags: info.tags }),
  };
}

interface Score {
  name: string | undefined;
  value: number | null;
}
const NOT_SCORED: Score = { name: undefined, value: null };

/**
 * A score without a number leaves the sample unscored. Throws `RecordError` if only the user can choose the number, because a later
 * import of the same log could not correct it.
 */
function scoreOf(scores: JsonObject, info: JsonObject, wanted: string | undefined): Score {
  const declared = listOf(info.scorers).map((scorer) => textOf(objectOf(scorer).name));
  const names = [...declared, ...Object.keys(scores)].filter((name) => name !== undefined);
  const name =
    wanted === undefined
      ? names.find((one) => Object.hasOwn(scores, one))
      : (names.find((one) => one === wanted) ?? names.find((one) => wanted.startsWith(`${one}.`)));
  if (name === undefined && wanted !== undefined && names.length > 0) {
    throw new RecordError(`There is no score ${wanted}: give --scorer one of ${[...new Set(names)].join(', ')}.`);
  }
  if (name === undefined || !Object.hasOwn(scores, name)) return { name, value: null };
  const { value } = objectOf(scores[name]);
  if (wanted !== undefined && wanted !== name) return { name: wanted, value: partOf(name, value, wanted.slice(name.length + 1)) };
  const parts = isObject(value) ? Object.keys(value).filter((key) => numberOfScore(value[key]) !== null) : [];
  if (parts.length > 1) {
    throw new RecordError(`The score ${name} has several values: give --scorer one of ${parts.map((key) => `${name}.${key}`).join(', ')}.`);
  }
  return { name, value: numberOfScore(value) };
}

/** One value of a score that has several. */
function partOf(name: string, value: unknown, key: string): number | null {
  if (isObject(value) && Object.hasOwn(value, key)) return numberOfScore(value[key]);
  if (value === undefined || value === null) return null;
  const keys = isObject(value) ? Object.keys(value) : [];
  throw new RecordError(`The score ${name} has no value ${key}: ${keys.length > 0 ? `it has ${keys.join(', ')}` : 'it is one value'}.`);
}

/** As `inspect_ai.scorer.value_to_float`: letters, numbers, booleans, numbers as text; an object with one value counts as that value. */
function numberOfScore(value: unknown): number | null {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'number') return value;
  if (isObject(value)) return Object.keys(value).length === 1 ? numberOfScore(Object.values(value)[0]) : null;
  if (typeof value !== 'string') return null;
  if (Object.hasOwn(LETTERS, value)) return LETTERS[value]!;
  if (Object.hasOwn(WORDS, value.toLowerCase())) return WORDS[value.toLowerCase()]!;
  return value.trim() !== '' && Number.isFinite(Number(value)) ? Number(value) : null;
}

/** The stop reason of the last model call, if it applies to the whole sample. */
function modelStop(sample: JsonObject): string | undefined {
  const stop = textOf(objectOf(listOf(objectOf(sample.output).choices)[0]).stop_reason);
  if (stop === 'max_tokens') return 'max_tokens';
  if (stop === 'model_length') return 'context_length';
  return stop === 'stop' ? 'stop' : undefined;
}

function tokensOf(usage: JsonObject): JsonObject {
  const sum = (key: string) => {
    const values = Object.values(usage).flatMap((one) => numberOf(objectOf(one)[key]) ?? []);
    return values.length > 0 ? values.reduce((total, value) => total + value, 0) : undefined;
  };
  return compact({ prompt: sum('input_tokens'), output: sum('output_tokens') });
}

/** The time of each message by its id: the end of the model call or tool call that produced it. */
function timesOf(sample: JsonObject): Map<string, unknown> {
  const times = new Map<string, unknown>();
  for (const event of listOf(sample.events).filter(isObject)) {
    const at = event.completed ?? event.timestamp;
    if (event.event === 'tool' && typeof event.message_id === 'string') times.set(event.message_id, at);
    if (event.event !== 'model') continue;
    for (const choice of listOf(objectOf(event.output).choices)) {
      const id = textOf(objectOf(objectOf(choice).message).id);
      if (id !== undefined) times.set(id, at);
    }
  }
  return times;
}

function timed(message: JsonObject, times: Map<string, unknown>): JsonObject {
  const timestamp = typeof message.id === 'string' ? times.get(message.id) : undefined;
  return { ...message, ...(timestamp === undefined ? {} : { timestamp }), ...(message.role === 'tool' ? { name: message.function } : {}) };
}

const ATTACHMENT = 'attachment://';

/** Replaces references to attachments (large texts and images, stored by their hash) by their content. */
function withAttachments(sample: JsonObject): JsonObject {
  const attachments = objectOf(sample.attachments);
  if (Object.keys(attachments).length === 0) return sample;
  const put = (value: unknown): unknown => {
    if (typeof value === 'string') {
      const found = value.startsWith(ATTACHMENT) ? attachments[value.slice(ATTACHMENT.length)] : undefined;
      return typeof found === 'string' ? found : value;
    }
    if (Array.isArray(value)) return value.map(put);
    return isObject(value) ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, put(item)])) : value;
  };
  const { messages, input, target, choices, metadata } = sample;
  return { ...sample, ...(put({ messages, input, target, choices, metadata }) as JsonObject) };
}
