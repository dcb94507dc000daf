import { isObject, type JsonObject } from '@palestra/protocol';
import { chatMessages, chatProblem } from './chat-messages.ts';
import { type DraftMessage, digestOf, eventsOf, type Imported, importId, type ImportOptions, type RolloutDraft } from './imported.ts';
import { compact, first, intOf, listOf, numberOf, objectOf, rewardNumber, textOf, textOrJson, timeOf, unquoted } from './json-fields.ts';
import { attempt, eachLine, RecordError } from './json-lines.ts';

export interface VerifiersOptions extends ImportOptions {
  /** `metadata.json` of the results: `env_id`, `model`, `rollouts_per_example`, ... */
  metadata?: JsonObject;
}

/**
 * Results of verifiers (github.com/PrimeIntellect-ai/verifiers): `results.jsonl` up to 0.1.x, one rollout per line in the order of
 * `state_to_output`, also as rows of a saved Hugging Face dataset (prompt, completion and info as JSON text); and `traces.jsonl` from
 * 0.2, one episode with the traces of its agents per line.
 */
export function importVerifiers(bytes: AsyncIterable<Uint8Array>, options: VerifiersOptions): AsyncGenerator<Imported> {
  const seen = new Map<string, number>();
  return eachLine(bytes, (record, { number, text }) => {
    const where = `line ${number}`;
    if (Array.isArray(record.traces)) return episode(record, where, options);
    const example = idText(record.example_id);
    // Rollouts of an example may be in any order; the sample index is their order in the file.
    const sample = example === undefined ? undefined : (seen.get(example) ?? 0);
    if (example !== undefined && sample !== undefined) seen.set(example, sample + 1);
    const draft = draftOfRow(record, { key: ['verifiers', number, digestOf(text)], example, sample, metadata: options.metadata ?? {} });
    return [{ where, events: eventsOf(draft, options) }];
  });
}

const idText = (value: unknown): string | undefined => (typeof value === 'number' ? String(value) : textOf(value));

interface Row {
  key: readonly unknown[];
  example: string | undefined;
  sample: number | undefined;
  metadata: JsonObject;
}

/** Keys that do not become metadata. */
const KNOWN = new Set(
  'prompt completion reward error error_chain long_error_chain example_id task info answer timing is_completed is_truncated stop_condition metrics tool_defs token_usage trajectory num_turns'.split(
    ' ',
  ),
);
/** Errors of the service behind the environment (verifiers/errors.py). Every other error is the environment's. */
const INFRASTRUCTURE = /Infra|Sandbox|Tunnel|Interception|Model|Provider|Connection|RateLimit|Timeout|Cancelled/;
/** Recorded as an error, but caused by the policy. */
const OVERLONG = 'OverlongPromptError';
const STOPS: Record<string, string> = {
  max_turns_reached: 'max_turns',
  max_turns: 'max_turns',
  prompt_too_long: 'context_length',
  timeout_reached: 'timeout',
  no_tools_called: 'no_tool_call',
  max_total_completion_tokens_reached: 'max_tokens',
  max_output_tokens: 'max_tokens',
  max_total_tokens: 'max_tokens',
  max_input_tokens: 'context_length',
  compaction_failed: 'context_length',
};

function draftOfRow(record: JsonObject, row: Row): RolloutDraft {
  const messages = [...turns(record.prompt, 'user', 'prompt'), ...turns(record.completion, 'assistant', 'completion')];
  if (messages.length === 0) throw new RecordError('The row has neither prompt nor completion.');
  const hasError = record.error !== undefined && record.error !== null && record.error !== '';
  const overlong = hasError && (textOrJson(record.error) ?? '').includes(OVERLONG);
  const failed = hasError && !overlong;
  const reward = rewardNumber(record.reward) ?? null;
  const metrics = objectOf(unquoted(record.metrics));
  const truncated = record.is_truncated === true;
  const timing = objectOf(unquoted(record.timing));
  const raw = textOf(record.stop_condition);
  const model = first(textOf, record.model, row.metadata.model);
  const environment = textOf(row.metadata.env_id);
  const index = intOf(record.example_id);
  return {
    key: row.key,
    at: first(timeOf, timing.start_time, timing.start),
    start: {
      ...(environment === undefined ? {} : { environment }),
      ...(textOf(record.task) === undefined ? {} : { variant: textOf(record.task) }),
      run_info: compact({ model_name: model, run_type: 'eval', framework: 'verifiers' }),
      rollout_info: compact({
        task_index: index,
        duration_ms: durationMs(timing),
        temperature: numberOf(objectOf(row.metadata.sampling_args).temperature),
      }),
      task_spec: compact({ example_id: record.example_id, answer: record.answer, info: unquoted(record.info) }),
      metadata: compact({
        // A row has its metrics twice: as an object and as keys.
        ...Object.fromEntries(Object.entries(record).filter(([name]) => !KNOWN.has(name) && !Object.hasOwn(metrics, name))),
        metrics,
        num_turns: first(intOf, metrics.num_turns, record.num_turns),
        tools: unquoted(record.tool_defs),
        group_id: row.example === undefined ? undefined : [environment, row.example].filter(Boolean).join(':'),
        sample_idx: row.sample,
        n_samples: intOf(row.metadata.rollouts_per_example),
        phase: 'eval',
        stop_reason: failed ? blame(record.error) : overlong ? 'context_length' : stopOf(raw, truncated),
        stop_condition: raw,
        error: hasError ? unquoted(record.error) : undefined,
        // A failed rollout is saved with reward 0.0, which is not a score.
        source_reward: failed ? reward : undefined,
        tokens: tokensOf(objectOf(unquoted(record.token_usage))),
        imported_from: 'verifiers',
      }),
    },
    messages,
    reward: failed ? null : reward,
    finished: !failed && !overlong && !truncated && record.is_completed !== false,
  };
}

/** A conversation, a text (completion environments), or either as JSON text (saved datasets). */
function turns(value: unknown, role: string, name: string): DraftMessage[] {
  const content = unquoted(value);
  if (content === undefined || content === null || content === '') return [];
  if (typeof content === 'string') return chatMessages([{ role, content }]);
  const problem = chatProblem(content);
  if (problem !== null) throw new RecordError(`${name}: ${problem}`);
  return chatMessages(content as unknown[]);
}

/** A stop condition of the environment, under any name, is the end of the episode. */
function stopOf(raw: string | undefined, truncated: boolean): string | undefined {
  const known = raw === undefined ? undefined : STOPS[raw];
  return known ?? (truncated ? 'max_tokens' : raw === undefined ? undefined : 'finished');
}

function blame(error: unknown): 'env_error' | 'infra_error' {
  const parsed = unquoted(error);
  const name = isObject(parsed) ? `${String(parsed.error ?? parsed.type ?? '')} ${String(parsed.error_chain_repr ?? '')}` : String(parsed);
  return INFRASTRUCTURE.test(name) ? 'infra_error' : 'env_error';
}

function durationMs(timing: JsonObject): number | undefined {
  const total = first(numberOf, timing.total_ms, typeof timing.total === 'number' ? timing.total * 1000 : undefined);
  return total === undefined ? undefined : Math.round(total);
}

const tokensOf = (usage: JsonObject): JsonObject =>
  compact({
    prompt: first(numberOf, usage.input_tokens, usage.prompt_tokens),
    output: first(numberOf, usage.output_tokens, usage.completion_tokens),
  });

/**
 * An episode of `traces.jsonl`: one rollout for each branch of each agent's trace. A trace has one score. Its last branch is its
 * conversation (`Trace.messages` in verifiers) and gets the score; the other branches (sub-agents, compacted parts) are unscored.
 */
function episode(record: JsonObject, where: string, options: VerifiersOptions): Imported[] {
  const traces = listOf(record.traces).filter(isObject);
  if (traces.length === 0) return [{ where, problem: 'The episode has no traces.' }];
  return traces.flatMap((trace, number) => {
    const label = traces.length > 1 ? `${where}, trace ${number}` : where;
    return attempt(label, () => {
      const branches = branchesOf(trace);
      return branches.map((nodes, branch) => {
        const main =
          branch === branches.length - 1 ? null : importId('rollout', options.runName, ...keyOf(record, trace, branches.length - 1));
        return { where: label, events: eventsOf(draftOfTrace({ record, trace, nodes, branch, main }), options) };
      });
    });
  });
}

/** Paths from the root to each leaf, in the order of the leaves. */
function branchesOf(trace: JsonObject): JsonObject[][] {
  const nodes = listOf(trace.nodes).map(objectOf);
  if (nodes.length === 0) throw new RecordError('The trace has no messages.');
  const parents = new Set(nodes.map((node) => intOf(node.parent)));
  const leaves = [...nodes.keys()].filter((index) => !parents.has(index));
  return leaves.map((leaf) => {
    const path: JsonObject[] = [];
    for (let at: number | undefined = leaf; at !== undefined; at = intOf(nodes[at]?.parent)) {
      if (nodes[at] === undefined || path.length > nodes.length) throw new RecordError('The nodes of the trace are no tree.');
      path.unshift(nodes[at]!);
    }
    return path;
  });
}

interface Sample {
  record: JsonObject;
  trace: JsonObject;
  nodes: JsonObject[];
  branch: number;
  /** Rollout of the last branch; null for the last branch itself. */
  main: string | null;
}

const keyOf = (record: JsonObject, trace: JsonObject, branch: number): unknown[] => ['verifiers-trace', trace.id ?? record.id, branch];

function draftOfTrace({ record, trace, nodes, branch, main }: Sample): RolloutDraft {
  const messages = chatMessages(nodes.map((node) => ({ ...objectOf(node.message), timestamp: node.timestamp })));
  if (messages.length === 0) throw new RecordError('The trace has no messages.');
  const task = objectOf(trace.task ?? record.task);
  const data = objectOf(task.data);
  const agent = objectOf(trace.agent);
  const run = objectOf(record.run);
  const work = objectOf(run.work);
  const errors = [...listOf(trace.errors), ...listOf(record.errors)];
  const failed = trace.ok === false && errors.length > 0;
  const rewards = Object.values(objectOf(trace.rewards)).filter(isObject);
  // A score that is no number, such as NaN, leaves the trace without one: the sum of the others would be another reward.
  const isScored = rewards.length > 0 && rewards.every(({ score }) => rewardNumber(score) !== undefined);
  const reward =
    !isScored || failed || main !== null
      ? null
      : rewards.reduce((sum, { score, weight }) => sum + rewardNumber(score)! * (numberOf(weight) ?? 1), 0);
  const raw = textOf(trace.stop_condition);
  const truncated = isCutShort(trace);
  const isWhole = nodes.length === listOf(trace.nodes).length;
  const model = first(textOf, ...listOf(trace.calls).map((call) => objectOf(call).model), objectOf(agent.config).model);
  const phase = first(textOf, work.type, run.type) ?? 'eval';
  const step = intOf(work.step);
  const index = intOf(data.idx);
  return {
    key: keyOf(record, trace, branch),
    at: timeOf(objectOf(trace.timing).start),
    start: {
      ...(textOf(objectOf(record.env).id) === undefined ? {} : { environment: textOf(objectOf(record.env).id) }),
      ...(textOf(task.type) === undefined ? {} : { variant: textOf(task.type) }),
      ...(step === undefined ? {} : { step }),
      run_info: compact({ model_name: model, run_type: phase === 'train' ? 'train' : 'eval', framework: 'verifiers' }),
      rollout_info: compact({ task_index: index, current_step: step }),
      task_spec: data,
      metadata: compact({
        group_id: groupOf(record, task, textOf(agent.name)),
        phase,
        policy_step: intOf(objectOf(work.policy).start),
        metrics: trace.metrics,
        rewards: trace.rewards,
        task_key: task.key ?? task.hash,
        agent: agent.name,
        trainable: agent.trainable,
        episode_id: record.id,
        branch: branch > 0 ? branch : undefined,
        branch_of: main ?? undefined,
        stop_reason: failed ? blame(errors.at(-1)) : trace.is_timeout === true ? 'timeout' : stopOf(raw, truncated),
        stop_condition: raw,
        errors,
        // Counts of the whole trace, which a single branch does not reach.
        tokens: isWhole ? compact({ prompt: numberOf(trace.num_input_tokens), output: numberOf(trace.num_output_tokens) }) : undefined,
        info: trace.info,
        imported_from: 'verifiers',
      }),
    },
    messages,
    reward,
    finished:
      !failed && !truncated && trace.is_completed === true && trace.is_timeout !== true && (raw === undefined || STOPS[raw] === undefined),
  };
}

/** `AgentInfo.name` in environments with one agent. */
const ONLY_AGENT = 'agent';

/** Whether a trace of several agents is scored by its own measure: a judge is no sample beside the solvers. */
function groupOf(record: JsonObject, task: JsonObject, agent: string | undefined): string | undefined {
  const group = textOf(objectOf(record.group).id);
  if (agent === undefined || agent === ONLY_AGENT) return group;
  const named = group ?? first(textOf, task.key, task.hash) ?? idText(objectOf(task.data).idx);
  return named === undefined ? undefined : [textOf(objectOf(record.env).id), named, agent].filter(Boolean).join(':');
}

/** Whether a limit cut the last answer of the model (`Trace.is_truncated` in verifiers). */
function isCutShort(trace: JsonObject): boolean {
  const answered = listOf(trace.calls)
    .map(objectOf)
    .filter(({ error }) => error === undefined || error === null);
  return answered.at(-1)?.finish_reason === 'length';
}
