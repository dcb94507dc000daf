import { diffLines, diffWordsWithSpace } from 'diff';
import { useMemo } from 'react';
import { parseJson } from '../text/json.ts';
import { PlainText } from '../text/PlainText.tsx';

/** Longer texts are compared by line, and of those only so many characters. */
const BY_WORD = 8_000;
const MOST = 60_000;
/** The algorithm is quadratic in what differs: texts that share nothing are shown whole instead. */
const MOST_EDITS = 2_000;

/** Of the longer text; texts that share less are told apart by reading both, not by their few common words. */
const SHARED = 0.4;

/** JSON of one line reads as one line of difference. */
const spread = (text: string): string => {
  const value = parseJson(text);
  return value !== null && typeof value === 'object' ? JSON.stringify(value, null, 1) : text;
};

export interface Part {
  text: string;
  side: 'both' | 'a' | 'b';
}

export function textDiff(a: string, b: string): Part[] {
  const [left, right] = [spread(a).slice(0, MOST), spread(b).slice(0, MOST)];
  const options = { maxEditLength: MOST_EDITS };
  const byLine = left.length + right.length > BY_WORD;
  const changes = byLine ? diffLines(left, right, options) : diffWordsWithSpace(left, right, options);
  const shared = (changes ?? []).reduce((sum, { value, added, removed }) => sum + (added || removed ? 0 : value.trim().length), 0);
  if (!changes || shared < SHARED * Math.max(left.length, right.length))
    return [
      ...(left === '' ? [] : [{ text: `${left}\n`, side: 'a' as const }]),
      ...(right === '' ? [] : [{ text: right, side: 'b' as const }]),
    ];
  return changes.map(({ value, added, removed }) => ({ text: value, side: removed ? 'a' : added ? 'b' : 'both' }));
}

const looks = { both: '', a: 'bg-bad-wash line-through decoration-bad decoration-1', b: 'bg-good-wash' } as const;

/** What stands in `a` and not in `b` is struck, what stands only in `b` is underlaid. */
export function TextDiff({ a, b }: { a: string; b: string }) {
  const parts = useMemo(() => textDiff(a, b), [a, b]);
  return (
    <div className="mono whitespace-pre-wrap break-words">
      {parts.map(({ text, side }, i) => {
        const Tag = side === 'a' ? 'del' : side === 'b' ? 'ins' : 'span';
        return (
          <Tag key={i} className={side === 'b' ? `no-underline ${looks[side]}` : looks[side]}>
            <PlainText text={text} />
          </Tag>
        );
      })}
    </div>
  );
}
