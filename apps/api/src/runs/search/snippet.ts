import { RE2JS } from 're2js';

/** Characters around the first match. */
const BEFORE = 80;
const LENGTH = 400;
const MAX_MATCHES = 20;
/** Characters of a message that are searched, as in the index. */
export const MAX_SEARCHED = 65_536;

export interface Snippet {
  snippet: string;
  /** Start and end in the snippet. */
  matches: [number, number][];
  /** Start of the snippet in the message. */
  offset: number;
}

/** Returns start and end of each match, in order. */
export type Finder = (text: string) => Iterable<[number, number]>;

/** Finds the words in a row, ignoring case and the characters between them, as a phrase search of the index does. */
export function wordFinder(text: string): Finder {
  const words = text.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
  if (words.length === 0) return () => [];
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])${words.join('[^\\p{L}\\p{N}]+')}(?![\\p{L}\\p{N}])`, 'giu');
  return function* find(content) {
    for (const match of content.matchAll(pattern)) yield [match.index, match.index + match[0].length];
  };
}

/** Instructions of the compiled pattern. The time of a search is at most proportional to them and to the text. */
export const programSize = (pattern: string): number => RE2JS.compile(pattern).programSize();

/** RE2, whose time is linear in the text. `pattern` must be valid. */
export function regexFinder(pattern: string): Finder {
  const compiled = RE2JS.compile(pattern);
  return function* find(content) {
    const matcher = compiled.matcher(content);
    while (matcher.find()) yield [matcher.start(), matcher.end()];
  };
}

/** The text around the first match; null without one. */
export function snippetOf(content: string, find: Finder): Snippet | null {
  const text = content.slice(0, MAX_SEARCHED);
  const matches: [number, number][] = [];
  let offset = 0;
  for (const [from, to] of find(text)) {
    if (matches.length === 0) offset = Math.max(0, from - BEFORE);
    if (from >= offset + LENGTH || matches.length === MAX_MATCHES) break;
    matches.push([from - offset, Math.min(to - offset, LENGTH)]);
  }
  return matches.length === 0 ? null : { snippet: text.slice(offset, offset + LENGTH), matches, offset };
}
