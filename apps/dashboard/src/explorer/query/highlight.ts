/** The kind of a piece of a query, for its colour. Works on any text, also on invalid queries. */
export type PieceKind = 'space' | 'sign' | 'key' | 'operator' | 'value' | 'string' | 'regex' | 'join' | 'text';
export interface Piece {
  text: string;
  kind: PieceKind;
}

const value: [PieceKind, RegExp][] = [
  ['string', /"(?:[^"\\]|\\[^])*"?/y],
  ['regex', /\/(?:[^/\\\s]|\\.)(?:[^/\\]|\\.)*\/i?(?=[\s,)]|$)/y],
  ['operator', /<=|>=|<|>|=|\.\.|,/y],
  ['value', /(?:(?!\.\.)[^\s"(),])+/y],
];
const start: [PieceKind, RegExp][] = [
  ['join', /OR(?=[\s()]|$)|[()]/y],
  ['sign', /-(?=[^\s])/y],
  ['key', /[A-Za-z_][A-Za-z0-9_.]*:/y],
  ['string', value[0]![1]],
  ['regex', value[1]![1]],
  ['text', /[^\s"()]+/y],
];

export function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = [];
  let inValue = false;
  for (let at = 0; at < text.length;) {
    const [kind, found] = match(text, at, inValue);
    if (kind === 'key') inValue = true;
    else if (kind === 'space' || kind === 'join') inValue = false;
    pieces.push({ text: found, kind });
    at += found.length;
  }
  return pieces;
}

function match(text: string, at: number, inValue: boolean): [PieceKind, string] {
  for (const [kind, pattern] of [['space', /\s+/y] as [PieceKind, RegExp], ...(inValue ? value : []), ...start]) {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found) return [kind, found];
  }
  return ['text', text[at]!];
}
