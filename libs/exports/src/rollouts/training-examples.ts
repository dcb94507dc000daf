import { type ChatTurn, chatMessages } from './chat-messages.ts';
import type { ExportedMessage, ExportedRollout, NarrowRollout } from './exported-rollout.ts';
import { isEffective } from './exported-rollout.ts';

/** A message with its weight in the loss. `weight` is OpenAI's name, `train` is the same as a boolean. */
export interface WeightedTurn extends ChatTurn {
  train: boolean;
  weight: 0 | 1;
}

/** The origin of an example. */
export interface ExampleLineage {
  run: string;
  environment: string | null;
  environment_version: string | null;
  split: string | null;
  task_index: number | null;
  task_key: string | null;
  step: number | null;
  step_prov: string;
  group_key: string | null;
  group_prov: string;
  reward_prov: string;
  model: string | null;
  normaliser_version: number;
}

export interface SftExample extends ExampleLineage {
  rollout_id: string;
  /** The messages before the first one of the model. They are not trained on. */
  prompt: WeightedTurn[];
  /**
   * The messages from the first one of the model. Tool results and user messages have weight 0, so that tokens can be masked by message.
   */
  completion: WeightedTurn[];
  reward: number | null;
  advantage: number | null;
  stop: string | null;
}

/** null for a rollout without a message of the model. */
export function sftExample(rollout: ExportedRollout): SftExample | null {
  const { prompt, completion } = splitTurns(rollout.messages);
  if (completion.length === 0) return null;
  return {
    rollout_id: rollout.rollout_id,
    prompt: prompt.map((turn) => ({ ...turn, train: false, weight: 0 })),
    completion: completion.map((turn) => {
      const train = turn.role === 'assistant';
      return { ...turn, train, weight: train ? 1 : 0 };
    }),
    reward: rollout.reward,
    advantage: rollout.advantage,
    stop: rollout.stop,
    ...lineageOf(rollout),
  };
}

/** Two rollouts of a group, the better one first. */
export interface PairOf<Row> {
  chosen: Row;
  rejected: Row;
  /** Number of comparable rollouts in the group; null for a pair of a review. */
  group_n: number | null;
  /** The reviewers that compared them; absent: their rewards did. */
  review?: ReviewOrigin;
}

/** The answers of reviewers and the queue that they come from. */
export interface ReviewOrigin {
  queue_id: string;
  queue: string;
  /** Query and seed of the sample. */
  queue_query: string;
  queue_seed: number;
  answers: ReviewedAnswer[];
}

export interface ReviewedAnswer {
  reviewer: string;
  /** A label, or of a pair `chosen`, `rejected`, `tied`: what the reviewer says of the chosen rollout. */
  choice: string;
  comment: string | null;
  /** ISO 8601. */
  at: string;
}

/** A rollout with the labels that reviewers gave it. */
export interface LabelledRollout<Row> {
  rollout: Row;
  review: ReviewOrigin;
}

/**
 * Pairs the best with the worst rollout of each group. Rows come group by group (one group is one key of one run, phase and step); two
 * rows of one group are held at a time. Of equal rewards the earlier row wins. Unscored rollouts and failures without fault of the policy
 * do not count. A group whose rewards are within 1e-6 has zero variance (docs/reference/metrics.md#canonical-metrics) and gives no pair.
 * Rows without a group are skipped.
 */
export async function* preferencePairs<Row extends NarrowRollout>(rows: AsyncIterable<Row>): AsyncGenerator<PairOf<Row>> {
  let group = null as GroupSoFar<Row> | null;
  for await (const row of rows) {
    if (row.group_key === null || !isEffective(row)) continue;
    const key = `${row.run_id} ${row.group_key} ${row.phase} ${row.step}`;
    if (group?.key !== key) {
      const pair = pairOf(group);
      if (pair) yield pair;
      group = { key, best: row, worst: row, n: 1 };
      continue;
    }
    group.n += 1;
    if (row.reward! > group.best.reward!) group.best = row;
    if (row.reward! < group.worst.reward!) group.worst = row;
  }
  const last = pairOf(group);
  if (last) yield last;
}

interface GroupSoFar<Row> {
  key: string;
  best: Row;
  worst: Row;
  n: number;
}

const ZERO_VARIANCE = 1e-6;

function pairOf<Row extends NarrowRollout>(group: { best: Row; worst: Row; n: number } | null): PairOf<Row> | null {
  if (!group || group.best.reward! - group.worst.reward! <= ZERO_VARIANCE) return null;
  return { chosen: group.best, rejected: group.worst, group_n: group.n };
}

export interface PreferenceExample extends ExampleLineage, Partial<ReviewOrigin> {
  prompt: ChatTurn[];
  chosen: ChatTurn[];
  rejected: ChatTurn[];
  chosen_reward: number | null;
  rejected_reward: number | null;
  /** Difference of the rewards; null if one is not scored. Reviewers may prefer the lower reward. */
  margin: number | null;
  group_n: number | null;
  chosen_rollout_id: string;
  rejected_rollout_id: string;
}

/** null if the prompts differ or one completion is empty, because there is nothing to compare. */
export function preferenceExample({ chosen, rejected, group_n, review }: PairOf<ExportedRollout>): PreferenceExample | null {
  const [good, bad] = [splitTurns(chosen.messages), splitTurns(rejected.messages)];
  if (good.completion.length === 0 || bad.completion.length === 0) return null;
  if (JSON.stringify(good.prompt) !== JSON.stringify(bad.prompt)) return null;
  return {
    prompt: good.prompt,
    chosen: good.completion,
    rejected: bad.completion,
    chosen_reward: chosen.reward,
    rejected_reward: rejected.reward,
    margin: chosen.reward === null || rejected.reward === null ? null : chosen.reward - rejected.reward,
    group_n,
    chosen_rollout_id: chosen.rollout_id,
    rejected_rollout_id: rejected.rollout_id,
    ...lineageOf(chosen),
    ...review,
  };
}

export interface LabelExample extends ExampleLineage, ReviewOrigin {
  rollout_id: string;
  /** The most frequent label; null if two are equally frequent. */
  label: string | null;
  /** Share of the answers with that label. */
  label_share: number | null;
  prompt: ChatTurn[];
  completion: ChatTurn[];
  reward: number | null;
  stop: string | null;
}

/** null for a rollout without a message of the model. */
export function labelExample({ rollout, review }: LabelledRollout<ExportedRollout>): LabelExample | null {
  const { prompt, completion } = splitTurns(rollout.messages);
  if (completion.length === 0) return null;
  const counts = new Map<string, number>();
  for (const { choice } of review.answers) counts.set(choice, (counts.get(choice) ?? 0) + 1);
  const [first, second] = [...counts].toSorted(([, a], [, b]) => b - a);
  const label = first && first[1] !== second?.[1] ? first[0] : null;
  return {
    rollout_id: rollout.rollout_id,
    label,
    label_share: label === null ? null : first![1] / review.answers.length,
    prompt,
    completion,
    reward: rollout.reward,
    stop: rollout.stop,
    ...lineageOf(rollout),
    ...review,
  };
}

/** Splits at the first message of the model. */
export function splitTurns(messages: readonly ExportedMessage[]): { prompt: ChatTurn[]; completion: ChatTurn[] } {
  const turns = chatMessages(messages, { reasoning: true });
  const first = turns.findIndex(({ role }) => role === 'assistant');
  return first < 0 ? { prompt: turns, completion: [] } : { prompt: turns.slice(0, first), completion: turns.slice(first) };
}

function lineageOf(rollout: NarrowRollout): ExampleLineage {
  const { run, environment, environment_version, split, task_index, task_key, step, step_prov, group_key, group_prov, reward_prov } =
    rollout;
  const where = { run, environment, environment_version, split, task_index, task_key, step, step_prov, group_key, group_prov, reward_prov };
  return { ...where, model: rollout.model, normaliser_version: rollout.normaliser_version };
}
