import { type JsonObject, MAX_REGEX_SIZE, regexSize } from '@palestra/protocol';
import { LRUCache } from 'lru-cache';
import { RE2JS } from 're2js';
import { intOfDigits } from '../json/fields.ts';

/** The owner's regex over rollout names. RE2 matches in linear time. */

const MAX_NAME_REGEX_CHARS = 200;
/** A longer name is not matched. */
const MAX_NAME_CHARS = 16_384;
const GROUPS = ['task', 'step', 'sample'] as const;

export interface NameParts {
  task: string | null;
  step: number | null;
  sample: number | null;
}

/** Why the regex cannot be used; null if it can. */
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

/** The named groups of the match; null if the regex does not match or cannot be used. */
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

/** Caches compiled regexes, because a few of them match millions of names. False: the regex cannot be used. */
const compiled = new LRUCache<string, RE2JS | false>({ max: 64 });

function compiledOf(regex: string): RE2JS | null {
  const known = compiled.get(regex);
  if (known !== undefined) return known || null;
  const fresh = nameRegexProblem(regex) === null && RE2JS.compile(regex);
  compiled.set(regex, fresh);
  return fresh || null;
}
