import { diffLines, diffWordsWithSpace } from 'diff';
import { useMemo } from 'react';
import { parseJson } from '../text/json.ts';
import { PlainText } from '../text/PlainText.tsx';

/** Characters of both texts together. Longer texts are compared by line. */
const MAX_WORD_DIFF_CHARACTERS = 8_000;
/** Characters of each text that are compared. */
const MAX_CHARACTERS = 60_000;
/** The algorithm is quadratic in the number of edits. With more edits both texts are shown whole. */
const MAX_EDITS = 2_000;
/** If a smaller part of the longer text is common, both texts are shown whole. */
const MIN_SHARED = 0.4;

/** Breaks JSON into lines, because a diff by line of one long line says nothing. */
const splitJson = (text: string): string => {
  const value = parseJson(text);
  return value !== null && typeof value === 'object' ? JSON.stringify(value, null, 1) : text;
};

export interface Part {
  text: string;
  side: 'both' | 'a' | 'b';
}

export function textDiff(a: string, b: string): Part[] {
  const [left, right] = [splitJson(a).slice(0, MAX_CHARACTERS), splitJson(b).slice(0, MAX_CHARACTERS)];
  const options = { maxEditLength: MAX_EDITS };
  const byLine = left.length + right.length > MAX_WORD_DIFF_CHARACTERS;
  const changes = byLine ? diffLines(left, right, options) : diffWordsWithSpace(left, right, options);
  const shared = (changes ?? []).reduce((sum, { value, added, removed }) => sum + (added || removed ? 0 : value.trim().length), 0);
  if (!changes || shared < MIN_SHARED * Math.max(left.length, right.length))
    return [
      ...(left === '' ? [] : [{ text: `${left}\n`, side: 'a' as const }]),
      ...(right === '' ? [] : [{ text: right, side: 'b' as const }]),
    ];
  return changes.map(({ value, added, removed }) => ({ text: value, side: removed ? 'a' : added ? 'b' : 'both' }));
}

const classNames = { both: '', a: 'bg-bad-wash line-through decoration-bad decoration-1', b: 'bg-good-wash' } as const;

/** Text that only `a` has is struck through; text that only `b` has is highlighted. */
export function TextDiff({ a, b }: { a: string; b: string }) {
  const parts = useMemo(() => textDiff(a, b), [a, b]);
  return (
    <div className="mono whitespace-pre-wrap break-words">
      {parts.map(({ text, side }, i) => {
        const Tag = side === 'a' ? 'del' : side === 'b' ? 'ins' : 'span';
        return (
          <Tag key={i} className={side === 'b' ? `no-underline ${classNames[side]}` : classNames[side]}>
            <PlainText text={text} />
          </Tag>
        );
      })}
    </div>
  );
}
