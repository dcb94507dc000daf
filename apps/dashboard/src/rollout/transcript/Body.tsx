import type { RolloutMessageView } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo, useState } from 'react';
import { bodyQuery, bodyUrl, objectUrl } from '../../data/rollout.ts';
import { formatBytes, plural } from '../../format/number.ts';
import { JsonBody } from '../../text/JsonBody.tsx';
import { parseTree } from '../../text/json.ts';
import { MessageText } from '../../text/MessageText.tsx';
import { imagesOf, textOfParts, withoutImageNames } from '../../text/objects.ts';
import { isLong, previewOf, sizeText } from '../../text/preview.ts';
import { type Openness, useRollout } from '../context.ts';
import { RawLines } from './RawLines.tsx';

/** Bytes. Larger texts are read in windows and not parsed. */
const MAX_FULL_BYTES = 200_000;

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

  // A tree shows only its beginning by itself.
  const isTree = bytes === undefined && value !== undefined && contentText === null;
  const gated = bytes !== undefined || (isLong(text) && !isTree);
  const isOpen = large ? open === 'open' : open !== 'folded';
  let content: ReactNode;
  if (large && isOpen) content = <RawLines key={message.eventId} message={message} bytes={bytes} />;
  else if (gated && (!isOpen || shown === undefined))
    content = <MessageText text={previewOf(text)} kind={large ? 'plain' : kind} className={className} />;
  else if (contentText !== null) content = <MessageText text={contentText} kind="markdown" className={className} />;
  else if (value !== undefined) content = <JsonBody text={withoutImageNames(shown!)} value={value} />;
  else content = <MessageText text={shown!} kind={kind} className={className} />;
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
      Show all ({sizeText(text)}, {plural(text.split('\n').length, 'line')})
    </>
  );
}
