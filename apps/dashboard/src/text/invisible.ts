/** Invisible characters that can change or hide text: bidi controls, zero-width characters, tags, control characters. */
const invisible =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|\u034f|[\ufe00-\ufe0f]|[\u{e0000}-\u{e01ef}]/gu;
/** Characters before which a variation selector is legitimate: characters with an emoji form, and Chinese characters. */
const acceptsVariation = /[\p{Emoji}\p{Script=Han}]$/u;
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
  /** The text is a visible name of an invisible character. */
  mark: boolean;
}

/** Splits a text at its invisible characters and names them. Joiners and variation selectors inside emoji stay. */
export function splitInvisible(input: string): TextPart[] {
  const parts: TextPart[] = [];
  let position = 0;
  for (const match of input.matchAll(invisible)) {
    const before = input.slice(position, match.index);
    const preceding = input.slice(Math.max(0, match.index - 3), match.index);
    if (match[0] === '\u200d' && /[\p{Extended_Pictographic}\p{Emoji_Modifier}]\ufe0f?$/u.test(preceding)) continue;
    if (/[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/u.test(match[0]) && acceptsVariation.test(preceding)) continue;
    if (before) parts.push({ text: before, mark: false });
    const code = match[0].codePointAt(0)!;
    parts.push({ text: names[match[0]] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`, mark: true });
    position = match.index + match[0].length;
  }
  if (position < input.length) parts.push({ text: input.slice(position), mark: false });
  return parts;
}

/** The same as one string, for Markdown source and attributes. */
export const markInvisible = (input: string): string =>
  splitInvisible(input)
    .map((part) => (part.mark ? `⟦${part.text}⟧` : part.text))
    .join('');
