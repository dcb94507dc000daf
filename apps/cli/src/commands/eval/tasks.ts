import { UsageError } from '../../server-settings.ts';

/** Which tasks of a split are played: a number of them, or these. */
export type TaskChoice = { count: number } | { indexes: number[] };

/** Parses a count such as `50`, or indexes such as `0,3,10..20` (with both ends). `7..7` is the task 7. Throws `UsageError`. */
export function parseTasks(text: string): TaskChoice {
  const invalid = () => new UsageError(`Invalid tasks "${text}". Expected a count such as 50, or indexes such as 0,3,10..20.`);
  if (/^[1-9]\d{0,6}$/.test(text)) return { count: Number(text) };
  const chosen = new Set<number>();
  if (!/[,.]/.test(text)) throw invalid();
  for (const part of text.split(',')) {
    const range = /^(\d{1,7})(?:\.\.(\d{1,7}))?$/.exec(part.trim());
    if (!range) throw invalid();
    const [first, last] = [Number(range[1]), Number(range[2] ?? range[1])];
    if (last < first) throw invalid();
    for (let index = first; index <= last; index += 1) chosen.add(index);
  }
  return { indexes: [...chosen].toSorted((a, b) => a - b) };
}
