import { findKey, QUERY_KEYS, type QueryKeyEntry } from './catalogue.ts';

export interface Completion {
  /** Replaces `[from, to)` of the text. */
  text: string;
  kind: 'key' | 'value';
  description: string;
}

export interface Completions {
  from: number;
  to: number;
  candidates: Completion[];
}

/**
 * Completions at the cursor: keys at the start of a clause, values of enumerations after `key:`, an example for other kinds of empty
 * values. None inside quotes and regexes. The caller adds names of environments, tools and tags.
 */
export function completions(text: string, cursor: number): Completions {
  const at = Math.max(0, Math.min(cursor, text.length));
  const start = clauseStart(text, at);
  if (start === undefined) return { from: at, to: at, candidates: [] };
  const typed = text.slice(start, at);
  const colon = typed.indexOf(':');
  if (colon < 0) return { from: start, to: at, candidates: keysLike(typed) };
  const entry = findKey(typed.slice(0, colon));
  const comma = typed.lastIndexOf(',');
  const from = start + Math.max(colon, comma) + 1;
  return { from, to: at, candidates: entry === undefined ? [] : valuesLike(entry, text.slice(from, at), comma > colon) };
}

/** The start of the clause at the cursor, after its minus; undefined inside quotes. */
function clauseStart(text: string, cursor: number): number | undefined {
  let start = 0;
  let quoted = false;
  for (let at = 0; at < cursor; at++) {
    const character = text[at]!;
    if (quoted) {
      if (character === '\\') at++;
      else if (character === '"') quoted = false;
    } else if (character === '"') quoted = true;
    else if (character === '(' || character === ')' || /\s/.test(character)) start = at + 1;
  }
  if (quoted) return undefined;
  return text[start] === '-' && start < cursor ? start + 1 : start;
}

function keysLike(typed: string): Completion[] {
  const prefix = typed.toLowerCase();
  const starting = QUERY_KEYS.filter(({ key }) => key.startsWith(prefix));
  const inside = prefix.length < 2 ? [] : QUERY_KEYS.filter(({ key }) => !key.startsWith(prefix) && key.includes(prefix));
  return [...starting, ...inside].map(({ key, description }) => ({ text: `${key}:`, kind: 'key', description }));
}

function valuesLike(entry: QueryKeyEntry, typed: string, further: boolean): Completion[] {
  const values = entry.values ?? (entry.kind === 'boolean' ? ['true', 'false'] : []);
  const all = [...values, ...(entry.nullable ? ['null'] : [])];
  const found = all.filter((value) => value.startsWith(typed.toLowerCase()));
  // An example is a whole value, so it is offered only for an empty one.
  const example = values.length === 0 && typed === '' && !further ? [entry.example.slice(entry.key.length + 1)] : [];
  return [...example, ...found].map((value) => ({
    text: value,
    kind: 'value',
    description: value === 'null' ? 'not known' : entry.description,
  }));
}
