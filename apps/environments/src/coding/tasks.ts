import { z } from 'zod';
import { SeededRandom } from '@palestra/environment-kit';
import { EXAMPLES, type Exercise, type Json } from './families/family.ts';
import { families } from './families/index.ts';

export const taskSchema = z.object({
  id: z.string().optional(),
  family: z.string(),
  /** Index of the exercise in its family. */
  variant: z.int().min(0),
  level: z.int().min(1).max(5).optional(),
});
export type CodingTask = z.infer<typeof taskSchema>;

export interface Test {
  args: Json[];
  expected: Json;
}

export const SPLITS = ['train', 'validation', 'test'] as const;
/** Shares of the exercises of each family. The rest is for training. */
const SHARES = { validation: 0.1, test: 0.15 };

/** The tasks of each split in random order, so that families and levels mix. No exercise is in two splits. */
export const tasks: Record<string, CodingTask[]> = deal();

function deal(): Record<string, CodingTask[]> {
  const dealt: Record<string, CodingTask[]> = Object.fromEntries(SPLITS.map((split) => [split, []]));
  for (const { name, exercises } of families) {
    const all = exercises.map(({ level }, variant): CodingTask => ({ family: name, variant, level }));
    const shuffled = new SeededRandom('coding', 'splits', name).shuffle(all);
    const validation = Math.max(1, Math.floor(all.length * SHARES.validation));
    const test = Math.max(1, Math.ceil(all.length * SHARES.test));
    dealt['validation']!.push(...shuffled.slice(0, validation));
    dealt['test']!.push(...shuffled.slice(validation, validation + test));
    dealt['train']!.push(...shuffled.slice(validation + test));
  }
  for (const split of SPLITS) {
    dealt[split] = new SeededRandom('coding', 'order', split)
      .shuffle(dealt[split]!)
      .map((task, index) => ({ id: `${split}-${index}`, ...task }));
  }
  return dealt;
}

/** Throws a RangeError for a task that does not exist. */
export function exerciseOf({ family, variant }: CodingTask): Exercise {
  const exercise = families.find(({ name }) => name === family)?.exercises[variant];
  if (!exercise) throw new RangeError(`there is no exercise ${variant} of the family ${JSON.stringify(family)}`);
  return exercise;
}

/** Every input of a task with the value that the reference returns: the examples of the statement, and the hidden tests. */
export function testsOf(task: CodingTask): { examples: Test[]; hidden: Test[] } {
  const { inputs, reference } = exerciseOf(task);
  const all = inputs(new SeededRandom('coding', task.family, task.variant)).map((args) => ({
    args,
    // The reference may change its arguments. JSON has no -0.
    expected: JSON.parse(JSON.stringify(reference(...(structuredClone(args) as never[])))) as Json,
  }));
  return { examples: all.slice(0, EXAMPLES), hidden: all.slice(EXAMPLES) };
}

/** A value as a Python expression. */
export function toPython(value: Json): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(toPython).join(', ')}]`;
  if (typeof value === 'object') {
    const entries = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${toPython(item)}`);
    return `{${entries.join(', ')}}`;
  }
  return JSON.stringify(value);
}
