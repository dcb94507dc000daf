import type { RolloutMessageView } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo, useState } from 'react';
import { bodyQuery, bodyUrl, objectUrl } from '../../data/rollout.ts';
import { formatBytes, formatCount } from '../../format/number.ts';
import { JsonTree } from '../../text/JsonTree.tsx';
import { parseTree } from '../../text/json.ts';
import { chunkLongLines } from '../../text/long-lines.ts';
import { Markdown } from '../../text/Markdown.tsx';
import { imagesOf, textOfParts, withoutImageNames } from '../../text/objects.ts';
import { PlainText } from '../../text/PlainText.tsx';
import { isLong, previewOf, sizeText } from '../../text/preview.ts';
import { type Openness, useRollout } from '../context.ts';
import { RawLines } from './RawLines.tsx';

/** Bytes. Larger texts are read in windows and not parsed. */
const MAX_FULL_BYTES = 200_000;
/** Characters. Longer Markdown, or Markdown with a very long line, would block the page: it is shown as plain text. */
const MAX_MARKDOWN_CHARACTERS = 64_000;

/** Markdown of people and models, plain text of tools and terminals. */
function RenderedText({ text, kind, className }: { text: string; kind: 'markdown' | 'plain'; className: string }) {
  const visible = withoutImageNames(text);
  if (kind === 'markdown' && visible.length <= MAX_MARKDOWN_CHARACTERS && chunkLongLines(visible).length === 1)
    return <Markdown source={visible} className={className} />;
  return (
    <div className="mono whitespace-pre-wrap break-words">
      <PlainText text={visible} />
    </div>
  );
}

/** JSON as a collapsible tree. A button shows the text as it was sent. */
function JsonBody({ text, value }: { text: string; value: object }) {
  const [raw, setRaw] = useState(false);
  return (
    <div className="relative">
      {raw ? <RenderedText text={text} kind="plain" className="" /> : <JsonTree value={value} />}
      <button type="button" className="link absolute right-0 top-0 bg-paper-0 pl-2 font-sans text-[11px]" onClick={() => setRaw(!raw)}>
        {raw ? 'Show as tree' : 'Show as sent'}
      </button>
    </div>
  );
}

function Images({ names }: { names: readonly string[] }) {
  const { id, showImage } = useRollout();
  const [missing, setMissing] = useState<ReadonlySet<string>>(new Set());
  if (names.length === 0) return null;
  return (
    <div className="mt-2 flex flex-wrap gap-2">
      {names.map((name, i) =>
        missing.has(name) ? (
          <span key={name} className="chip">
            Image {i + 1} is missing
          </span>
        ) : (
          <button
            key={name}
            type="button"
            onClick={() => showImage(objectUrl(id, name))}
            className="overflow-hidden rounded-[4px] border border-line bg-paper-1"
          >
            <img
              src={objectUrl(id, name)}
              alt={`Image ${i + 1} of the message; click to enlarge`}
              loading="lazy"
              className="h-[120px] max-w-[320px] object-contain"
              onError={() => setMissing((before) => new Set(before).add(name))}
            />
          </button>
        ),
      )}
    </div>
  );
}

interface BodyProps {
  message: RolloutMessageView;
  /** Shown instead of the message's content. */
  text?: string;
  kind: 'markdown' | 'plain';
  className?: string;
  open: Openness;
  toggle: () => void;
}

/**
 * The text of a message. Texts over 4 kB or 200 lines show their beginning and a button with their size. Texts over 200 kB are read
 * in windows of raw lines. A text that the server cut can be downloaded.
 */
export function Body({ message, text = message.content ?? '', kind, className = '', open, toggle }: BodyProps) {
  const { id } = useRollout();
  const bytes = message.body_bytes;
  const large = bytes !== undefined && bytes > MAX_FULL_BYTES;
  const needsFullText = bytes !== undefined && !large && open !== 'folded';
  const fullText = useQuery({ ...bodyQuery(id, message.index, message.eventId), enabled: needsFullText });
  const shown = needsFullText ? fullText.data : text;
  const value = useMemo(() => (kind === 'plain' || /^\s*\[/.test(text) ? parseTree(shown ?? '') : undefined), [kind, shown, text]);
  const contentText = textOfParts(value);

  const gated = bytes !== undefined || isLong(text);
  const isOpen = large ? open === 'open' : open !== 'folded';
  let content: ReactNode;
  if (large && isOpen) content = <RawLines key={message.eventId} message={message} bytes={bytes} />;
  else if (gated && (!isOpen || shown === undefined))
    content = <RenderedText text={previewOf(text)} kind={large ? 'plain' : kind} className={className} />;
  else if (contentText !== null) content = <RenderedText text={contentText} kind="markdown" className={className} />;
  else if (value !== undefined) content = <JsonBody text={shown!} value={value} />;
  else content = <RenderedText text={shown!} kind={kind} className={className} />;
  return (
    <>
      {content}
      {(!gated || isOpen) && <Images names={imagesOf(shown ?? text)} />}
      {gated && (
        <div className="mt-1 flex flex-wrap gap-4 font-sans text-[12px] leading-[18px]">
          <button type="button" className="link" aria-expanded={isOpen} onClick={toggle}>
            {isOpen ? 'Show less' : <ShowAll text={text} bytes={bytes} large={large} />}
          </button>
          {bytes !== undefined && (
            <a className="link" href={bodyUrl(id, message.index, message.eventId)} download={`message-${message.index}.txt`}>
              Download
            </a>
          )}
          {needsFullText && fullText.isFetching && <span className="label">Loading {formatBytes(bytes)}…</span>}
          {needsFullText && fullText.error && <span className="text-bad">The text could not be loaded: {fullText.error.message}</span>}
        </div>
      )}
    </>
  );
}

function ShowAll({ text, bytes, large }: { text: string; bytes: number | undefined; large: boolean }) {
  if (large) return <>Show raw lines ({formatBytes(bytes)})</>;
  if (bytes !== undefined) return <>Show all ({formatBytes(bytes)})</>;
  return (
    <>
      Show all ({sizeText(text)}, {formatCount(text.split('\n').length)} lines)
    </>
  );
}
