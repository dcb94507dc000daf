import { type Completion, completions, type Completions, findKey, printQuery, type QueryKey } from '@palestra/query';

/** Values of a key in a run, most frequent first. */
export type KnownValues = Partial<Record<QueryKey, readonly { value: string; count: number }[]>>;

const MOST = 60;
/** The key before the value that is being typed. */
const keyBefore = /(?:^|[\s(])-?([a-z_.]+):(?:[^\s"]*,)?$/;

/** A value in query syntax, in quotes if necessary. */
export function printValue(key: QueryKey, value: string): string {
  const nowhere = { position: 0, length: 0 };
  const values = [{ kind: 'text' as const, text: value, ...nowhere }];
  const clause = { kind: 'field' as const, negated: false, key, values, ...nowhere };
  return printQuery({ clauses: [clause], ...nowhere }).slice(key.length + 1);
}

/** Completions of the query language, and the values of the run's rollouts, such as environments, tools and tags. */
export function complete(text: string, cursor: number, known: KnownValues): Completions {
  const found = completions(text, cursor);
  const entry = findKey(keyBefore.exec(text.slice(0, found.from))?.[1] ?? '');
  const values = entry && known[entry.key];
  if (!entry || !values) return { ...found, candidates: found.candidates.slice(0, MOST) };
  const typed = text.slice(found.from, found.to).toLowerCase();
  const counts = new Map(values.map(({ value, count }) => [value, count]));
  const fitting = values.filter(({ value }) => value.toLowerCase().includes(typed));
  const starting = fitting.filter(({ value }) => value.toLowerCase().startsWith(typed));
  const inside = fitting.filter((one) => !starting.includes(one));
  const ofRun = [...starting, ...inside].map(({ value, count }): Completion => ({
    text: printValue(entry.key, value),
    kind: 'value',
    description: rollouts(count),
  }));
  // For text keys the language only has an example; for enumerations it has all values, also those that no rollout has.
  const ofLanguage = found.candidates.filter(({ text: word }) => (entry.kind === 'text' ? word === 'null' : !counts.has(word)));
  return { ...found, candidates: [...ofRun, ...ofLanguage].slice(0, MOST) };
}

const rollouts = (count: number): string => (count === 1 ? '1 rollout' : `${count} rollouts`);

/** Inserts a completion into the text. A value at the end is followed by a space. */
export function accept(text: string, { from, to }: Completions, { text: word, kind }: Completion): { text: string; cursor: number } {
  const rest = text.slice(to);
  const gap = kind === 'value' && rest === '' ? ' ' : '';
  return { text: text.slice(0, from) + word + gap + rest, cursor: from + word.length + gap.length };
}
