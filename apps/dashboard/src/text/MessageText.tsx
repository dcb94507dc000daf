import { chunkLongLines } from './long-lines.ts';
import { Markdown } from './Markdown.tsx';
import { withoutImageNames } from './objects.ts';
import { PlainText } from './PlainText.tsx';

/** Characters. Longer Markdown, or Markdown with a very long line, would block the page: it is shown as plain text. */
const MAX_MARKDOWN_CHARACTERS = 64_000;

/** Untrusted text: Markdown of people and models, which keeps its line breaks, or plain text of tools and terminals. */
export function MessageText({ text, kind, className = '' }: { text: string; kind: 'markdown' | 'plain'; className?: string }) {
  const visible = withoutImageNames(text);
  if (kind === 'markdown' && visible.length <= MAX_MARKDOWN_CHARACTERS && chunkLongLines(visible).length === 1)
    return <Markdown source={visible} className={`keep-lines ${className}`} />;
  return (
    <div className="mono whitespace-pre-wrap break-words">
      <PlainText text={visible} />
    </div>
  );
}
