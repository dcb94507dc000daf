import { isObject } from '@palestra/protocol';
import type { PlayedEpisode } from '../play/play-episode.ts';

/** Shorter answers, such as "A" or 42, occur in many prompts by chance. */
const SHORTEST_TEXT = 3;
const SHORTEST_NUMBER = 3;

/** Values of the last call of a solution that occur in the prompt or in a description of a tool, except choices that the prompt lists. */
export function leakedAnswers({ prompt, tools, calls }: PlayedEpisode): string[] {
  const last = calls.findLast(({ refused }) => refused === null);
  if (last === undefined) return [];
  // What an earlier call revealed, or an argument that any call of the tool has, is no answer.
  const earlier = new Set(calls.filter((call) => call !== last && call.tool === last.tool).flatMap(({ input }) => valuesOf(input)));
  const descriptions = tools.map(({ description, input_schema }) => `${description}\n${JSON.stringify(descriptionsOf(input_schema))}`);
  const texts = [prompt, ...descriptions];
  return valuesOf(last.input).filter(
    (value) => !earlier.has(value) && texts.some((text) => occursIn(text, value)) && !isListedChoice(prompt, value),
  );
}

function valuesOf(input: unknown): string[] {
  if (typeof input === 'string') return input.trim().length >= SHORTEST_TEXT ? [input.trim()] : [];
  if (typeof input === 'number') return String(input).replaceAll(/\D/g, '').length >= SHORTEST_NUMBER ? [String(input)] : [];
  if (Array.isArray(input)) return input.flatMap(valuesOf);
  return isObject(input) ? Object.values(input).flatMap(valuesOf) : [];
}

/** The descriptions of a schema, without its enums, which list all choices. */
function descriptionsOf(schema: unknown): string[] {
  if (Array.isArray(schema)) return schema.flatMap(descriptionsOf);
  if (!isObject(schema)) return [];
  const own = typeof schema['description'] === 'string' ? [schema['description']] : [];
  return [...own, ...Object.values(schema).flatMap((value) => (typeof value === 'object' ? descriptionsOf(value) : []))];
}

/** As a whole word. */
function occursIn(text: string, value: string): boolean {
  for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + 1)) {
    if (!isWordCharacter(text[at - 1]) && !isWordCharacter(text[at + value.length])) return true;
  }
  return false;
}

const isWordCharacter = (character: string | undefined): boolean => character !== undefined && /[\p{L}\p{N}_]/u.test(character);

/** True for one of at least three items that the prompt lists beside each other, as the options of a multiple choice. */
function isListedChoice(prompt: string, value: string): boolean {
  const lists = [prompt.split('\n'), ...prompt.split(/[\n.:?!]/).map((part) => part.split(/,|;|\||\band\b|\bor\b/))];
  return lists.some((items) => items.length >= 3 && items.map(bare).includes(bare(value)));
}

/** Without bullets, numbers, quotes and articles. */
const bare = (item: string): string =>
  item
    .trim()
    .replace(/^(?:[-*•]|\(?[A-Za-z0-9]{1,2}[.)])\s+/, '')
    .replace(/^(?:the|a|an)\s+/i, '')
    .replaceAll(/^["'`]+|["'`.]+$/g, '')
    .toLowerCase();
