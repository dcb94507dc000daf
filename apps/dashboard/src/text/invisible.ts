/** Characters that change what a reader sees without being seen: bidi controls, zero-width characters, tags, NUL-like controls. */
const invisible =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu;
const names: Record<string, string> = {
  '\u202e': 'RLO',
  '\u202d': 'LRO',
  '\u200b': 'ZWSP',
  '\u200f': 'RLM',
  '\u200e': 'LRM',
  '\u00ad': 'SHY',
};

export interface TextPart {
  text: string;
  /** True for a visible stand-in of an invisible character. */
  mark: boolean;
}

/** Zero-width joiners and variation selectors inside emoji are left alone; everything else gets a visible marker. */
export function splitInvisible(input: string): TextPart[] {
  const parts: TextPart[] = [];
  let position = 0;
  for (const match of input.matchAll(invisible)) {
    const before = input.slice(position, match.index);
    if (match[0] === '\u200d' && /\p{Extended_Pictographic}\ufe0f?$/u.test(before)) continue;
    if (before) parts.push({ text: before, mark: false });
    const code = match[0].codePointAt(0)!;
    parts.push({ text: names[match[0]] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`, mark: true });
    position = match.index + match[0].length;
  }
  if (position < input.length) parts.push({ text: input.slice(position), mark: false });
  return parts;
}

/** The same as one string, for places that take no elements (Markdown source, attributes). */
export const markInvisible = (input: string): string =>
  splitInvisible(input)
    .map((part) => (part.mark ? `⟦${part.text}⟧` : part.text))
    .join('');
