import { Fragment, memo } from 'react';
import { parseAnsi } from './ansi.ts';
import { splitInvisible } from './invisible.ts';

function Marked({ text }: { text: string }) {
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

/** Untrusted text as text nodes: terminal colours by class, invisible characters made visible, nothing interpreted. */
export const PlainText = memo(function PlainText({ text }: { text: string }) {
  return (
    <bdi>
      {parseAnsi(text).map((part, i) =>
        part.className ? (
          <span key={i} className={part.className}>
            <Marked text={part.text} />
          </span>
        ) : (
          <Marked key={i} text={part.text} />
        ),
      )}
    </bdi>
  );
});
