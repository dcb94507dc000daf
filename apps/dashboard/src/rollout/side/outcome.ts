import type { RolloutHeader } from '@palestra/protocol';

/** Reads the outcome from free-form fields of an upload, by names that trainers and environments use. Pure. */

type OutcomeFields = Pick<RolloutHeader, 'metadata' | 'rollout_info' | 'run_info' | 'task_spec'>;
const COMPONENTS = ['reward_components', 'reward_breakdown', 'reward_details', 'components', 'rewards', 'scores'];
const GRADER = ['grader_text', 'grader_output', 'grader', 'judge', 'feedback', 'rationale', 'explanation'];
const GOLDEN = [
  'golden_answer',
  'gold_answer',
  'golden',
  'gold',
  'ground_truth',
  'reference_answer',
  'reference',
  'expected_answer',
  'expected',
  'answer',
  'solution',
  'target',
];
const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

const isObject = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === 'object' && !Array.isArray(value);

/** The value of the first name that one of the objects has; null without any. */
function firstValue(objects: readonly unknown[], names: readonly string[]): unknown {
  for (const name of names)
    for (const object of objects) {
      const value = isObject(object) && Object.hasOwn(object, name) ? object[name] : null;
      if (value !== null && value !== undefined && value !== '') return value;
    }
  return null;
}

const textOf = (value: unknown): string | null => (value === null ? null : typeof value === 'string' ? value : JSON.stringify(value));

/** The components of the reward, by name. */
export function rewardComponentsOf({ metadata, rollout_info }: OutcomeFields): [name: string, value: number][] {
  const components = firstValue([metadata, rollout_info], COMPONENTS);
  return isObject(components) ? Object.entries(components).filter((entry): entry is [string, number] => typeof entry[1] === 'number') : [];
}

export const graderTextOf = ({ metadata, rollout_info }: OutcomeFields): string | null =>
  textOf(firstValue([metadata, rollout_info], GRADER));

/** The expected answer of the task. */
export const goldenAnswerOf = ({ task_spec, metadata, rollout_info }: OutcomeFields): string | null =>
  textOf(firstValue([task_spec, metadata, rollout_info], GOLDEN));

/** Other rollouts that this one names. `id` is null if the name is not an id. */
export function relatedRolloutsOf({
  metadata,
  rollout_info,
  run_info,
}: OutcomeFields): { relation: string; name: string; id: string | null }[] {
  const related = (relation: string, names: readonly string[]) => {
    const name = firstValue([metadata, rollout_info, run_info], names);
    return typeof name === 'string' ? [{ relation, name, id: uuid.test(name) ? name.toLowerCase() : null }] : [];
  };
  return [
    ...related('Sub-agent of', ['parent_rollout', 'parent_rollout_id']),
    ...related('Branch of', ['branch_of']),
    ...related('Resumed from', ['resumed_from_rollout_id']),
  ];
}
