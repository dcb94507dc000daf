import { Fragment, memo } from 'react';
import { parseAnsi } from './ansi.ts';
import { splitInvisible } from './invisible.ts';
import { chunkLongLines } from './long-lines.ts';

function WithInvisibleMarks({ text }: { text: string }) {
  return splitInvisible(text).map((part, i) =>
    part.mark ? (
      <span key={i} className="invisible-mark" title={`Invisible character ${part.text}`}>
        {part.text}
      </span>
    ) : (
      <Fragment key={i}>{part.text}</Fragment>
    ),
  );
}

function AnsiText({ text }: { text: string }) {
  return parseAnsi(text).map((part, i) =>
    part.className ? (
      <span key={i} className={part.className}>
        <WithInvisibleMarks text={part.text} />
      </span>
    ) : (
      <WithInvisibleMarks key={i} text={part.text} />
    ),
  );
}

/**
 * Untrusted text as text nodes: terminal colours become classes, invisible characters become visible, nothing else is interpreted. Lines
 * of more than 10 000 characters are split.
 */
export const PlainText = memo(function PlainText({ text }: { text: string }) {
  const chunks = chunkLongLines(text);
  if (chunks.length === 1)
    return (
      <bdi>
        <AnsiText text={text} />
      </bdi>
    );
  return chunks.map((chunk, i) => (
    <bdi key={i} className="block [content-visibility:auto]">
      <AnsiText text={chunk} />
    </bdi>
  ));
});
