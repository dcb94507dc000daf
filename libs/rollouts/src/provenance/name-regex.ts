import { type JsonObject, MAX_REGEX_SIZE, regexSize } from '@palestra/protocol';
import { LRUCache } from 'lru-cache';
import { RE2JS } from 're2js';
import { intOfDigits } from '../json/fields.ts';

/** An owner's regex over rollout names. RE2: matching is linear in the name, whatever the regex. */

const MAX_NAME_REGEX_CHARS = 200;
/** A longer name is not matched at all rather than matched in part. */
const MAX_NAME_CHARS = 16_384;
const GROUPS = ['task', 'step', 'sample'] as const;

export interface NameParts {
  task: string | null;
  step: number | null;
  sample: number | null;
}

/** Why the regex cannot be used, for the owner; null when it can. */
export function nameRegexProblem(regex: string): string | null {
  if (regex.length > MAX_NAME_REGEX_CHARS) return `The regex is longer than ${MAX_NAME_REGEX_CHARS} characters.`;
  if (regexSize(regex) > MAX_REGEX_SIZE) return `The repetitions of the regex stand for more than ${MAX_REGEX_SIZE} parts.`;
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(regex);
  } catch (error) {
    return `This is no regex in RE2 syntax: ${error instanceof Error ? error.message : String(error)}`;
  }
  const named = Object.keys(compiled.namedGroups());
  return GROUPS.some((group) => named.includes(group)) ? null : `The regex has none of the named groups ${GROUPS.join(', ')}.`;
}

/** What the regex finds in the name; null when it does not match, or is no usable regex. */
export function matchName(regex: string, name: string): NameParts | null {
  const compiled = compiledOf(regex);
  if (compiled === null || name.length > MAX_NAME_CHARS) return null;
  const matcher = compiled.matcher(name);
  if (!matcher.find()) return null;
  const groups: JsonObject = {};
  const named = compiled.namedGroups();
  for (const group of GROUPS) if (Object.hasOwn(named, group)) groups[group] = matcher.group(group);
  const text = (group: string) => (typeof groups[group] === 'string' && groups[group] !== '' ? groups[group] : null);
  return { task: text('task'), step: intOfDigits(text('step')), sample: intOfDigits(text('sample')) };
}

/** A few regexes match millions of names. False: the regex is not usable. */
const compiled = new LRUCache<string, RE2JS | false>({ max: 64 });

function compiledOf(regex: string): RE2JS | null {
  const known = compiled.get(regex);
  if (known !== undefined) return known || null;
  const fresh = nameRegexProblem(regex) === null && RE2JS.compile(regex);
  compiled.set(regex, fresh);
  return fresh || null;
}
