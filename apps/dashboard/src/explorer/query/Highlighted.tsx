import type { QueryError } from '@palestra/query';
import { type PieceKind, piecesOf } from './highlight.ts';

const colour: Record<PieceKind, string> = {
  space: '',
  sign: 'text-bad',
  key: 'text-ink-3',
  operator: 'text-ink-3',
  value: 'text-ink-1',
  string: 'hljs-string',
  regex: 'hljs-string',
  join: 'hljs-keyword',
  text: 'hljs-string',
};
const wrong = 'underline decoration-wavy decoration-bad underline-offset-[3px]';

/** A query with syntax colours. The range of an error is underlined, so pieces are split at its ends. */
export function Highlighted({ text, error }: { text: string; error: QueryError | null }) {
  let at = 0;
  const from = error?.position ?? -1;
  // An error at the end of the text marks the last character.
  const begin = error && from >= text.length ? text.length - 1 : from;
  const end = error ? Math.max(begin + 1, from + error.length) : -1;
  return piecesOf(text).map((piece) => {
    const start = at;
    at += piece.text.length;
    const cuts = [start, ...[begin, end].filter((cut) => cut > start && cut < at), at];
    return cuts.slice(1).map((cut, i) => {
      const [low, high] = [cuts[i]!, cut];
      const marked = error !== null && low >= begin && high <= end;
      return (
        <span key={low} className={`${colour[piece.kind]} ${marked ? wrong : ''}`}>
          {text.slice(low, high)}
        </span>
      );
    });
  });
}
