import { RE2JS } from 're2js';

/** Characters around the first match. */
const BEFORE = 80;
const LENGTH = 400;
const MAX_MATCHES = 20;
/** Only so much of a message is searched, characters: that of the index. */
const LOOKED_AT = 65_536;

export interface Snippet {
  snippet: string;
  /** Begin and end in the snippet. */
  matches: [number, number][];
  /** Where the snippet begins. */
  offset: number;
}

/** Where something is found in a text, in order. */
export type Finder = (text: string) => Iterable<[number, number]>;

/** Words in a row, whatever stands between them, upper and lower case alike: what the index means by a phrase. */
export function wordFinder(text: string): Finder {
  const words = text.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
  if (words.length === 0) return () => [];
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])${words.join('[^\\p{L}\\p{N}]+')}(?![\\p{L}\\p{N}])`, 'giu');
  return function* find(content) {
    for (const match of content.matchAll(pattern)) yield [match.index, match.index + match[0].length];
  };
}

/** RE2, linear in the text. The pattern has been checked. */
export function regexFinder(pattern: string): Finder {
  const compiled = RE2JS.compile(pattern);
  return function* find(content) {
    const matcher = compiled.matcher(content);
    while (matcher.find()) yield [matcher.start(), matcher.end()];
  };
}

/** The place of the first match with its surroundings; null without one. */
export function snippetOf(content: string, find: Finder): Snippet | null {
  const text = content.slice(0, LOOKED_AT);
  const matches: [number, number][] = [];
  let offset = 0;
  for (const [from, to] of find(text)) {
    if (matches.length === 0) offset = Math.max(0, from - BEFORE);
    if (from >= offset + LENGTH || matches.length === MAX_MATCHES) break;
    matches.push([from - offset, Math.min(to - offset, LENGTH)]);
  }
  return matches.length === 0 ? null : { snippet: text.slice(offset, offset + LENGTH), matches, offset };
}
