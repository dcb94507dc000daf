import type { RolloutHeader } from '@palestra/protocol';

/** What trainers and environments say of an outcome in fields that nobody agreed on: by the names that are in use. Pure. */

type Said = Pick<RolloutHeader, 'metadata' | 'rollout_info' | 'run_info' | 'task_spec'>;
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

/** The first of these names that one of the places has with a value. */
function find(places: readonly unknown[], names: readonly string[]): unknown {
  for (const name of names)
    for (const place of places) {
      const value = isObject(place) && Object.hasOwn(place, name) ? place[name] : null;
      if (value !== null && value !== undefined && value !== '') return value;
    }
  return null;
}

const textOf = (value: unknown): string | null => (value === null ? null : typeof value === 'string' ? value : JSON.stringify(value));

/** The numbers that the reward was made of, by name. */
export function componentsOf({ metadata, rollout_info }: Said): [name: string, value: number][] {
  const found = find([metadata, rollout_info], COMPONENTS);
  return isObject(found) ? Object.entries(found).filter((entry): entry is [string, number] => typeof entry[1] === 'number') : [];
}

export const graderTextOf = ({ metadata, rollout_info }: Said): string | null => textOf(find([metadata, rollout_info], GRADER));

/** What the task wanted to hear. */
export const goldenOf = ({ task_spec, metadata, rollout_info }: Said): string | null =>
  textOf(find([task_spec, metadata, rollout_info], GOLDEN));

/** Other rollouts that this one names. `id`: where its name is one. */
export function relativesOf({ metadata, rollout_info, run_info }: Said): { what: string; name: string; id: string | null }[] {
  const relative = (what: string, names: readonly string[]) => {
    const name = find([metadata, rollout_info, run_info], names);
    return typeof name === 'string' ? [{ what, name, id: uuid.test(name) ? name.toLowerCase() : null }] : [];
  };
  return [
    ...relative('sub-agent of', ['parent_rollout', 'parent_rollout_id']),
    ...relative('branch of', ['branch_of']),
    ...relative('resumed from', ['resumed_from_rollout_id']),
  ];
}
