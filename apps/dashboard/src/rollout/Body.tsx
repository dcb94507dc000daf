import type { RolloutMessageView } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo, useState } from 'react';
import { bodyQuery, bodyUrl, objectUrl } from '../data/rollout.ts';
import { formatBytes, formatCount } from '../format/number.ts';
import { JsonTree } from '../text/JsonTree.tsx';
import { parseTree } from '../text/json.ts';
import { chunkLongLines } from '../text/long-lines.ts';
import { Markdown } from '../text/Markdown.tsx';
import { imagesOf, textOfParts, withoutImageNames } from '../text/objects.ts';
import { PlainText } from '../text/PlainText.tsx';
import { type Openness, useRollout } from './context.ts';
import { RawLines } from './RawLines.tsx';

const GATE_BYTES = 4_096;
const GATE_LINES = 200;
const PREVIEW_CHARACTERS = 1_500;
const PREVIEW_LINES = 24;
/** Larger texts are read in windows, bytes: nothing of them is parsed. */
const WHOLE_BYTES = 200_000;
/** Longer Markdown is shown as it was written, characters: rendering it would hold up the page; so is one with a line that must be cut. */
const MARKDOWN_CHARACTERS = 64_000;

export const isLong = (text: string): boolean => text.length > GATE_BYTES || text.split('\n', GATE_LINES + 1).length > GATE_LINES;
const preview = (text: string): string => text.slice(0, PREVIEW_CHARACTERS).split('\n').slice(0, PREVIEW_LINES).join('\n');
const byteLength = (text: string): number => new Blob([text]).size;

/** Text as its kind wants: Markdown of a person or model, or a terminal's and a tool's own. */
function Rendered({ text, kind, className }: { text: string; kind: 'markdown' | 'plain'; className: string }) {
  const words = withoutImageNames(text);
  if (kind === 'markdown' && words.length <= MARKDOWN_CHARACTERS && chunkLongLines(words).length === 1)
    return <Markdown source={words} className={className} />;
  return (
    <div className="mono whitespace-pre-wrap break-words">
      <PlainText text={words} />
    </div>
  );
}

/** JSON as a folded tree, with the way back to the text as it was sent. */
function Json({ text, value }: { text: string; value: object }) {
  const [raw, setRaw] = useState(false);
  return (
    <div className="relative">
      {raw ? <Rendered text={text} kind="plain" className="" /> : <JsonTree value={value} />}
      <button type="button" className="link absolute right-0 top-0 bg-paper-0 pl-2 font-sans text-[11px]" onClick={() => setRaw(!raw)}>
        {raw ? 'as a tree' : 'as sent'}
      </button>
    </div>
  );
}

function Images({ names }: { names: readonly string[] }) {
  const { id, showImage } = useRollout();
  const [gone, setGone] = useState<ReadonlySet<string>>(new Set());
  if (names.length === 0) return null;
  return (
    <div className="mt-2 flex flex-wrap gap-2">
      {names.map((name, i) =>
        gone.has(name) ? (
          <span key={name} className="chip">
            image {i + 1} is not in the store
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
              alt={`Image ${i + 1} of the message; opens larger`}
              loading="lazy"
              className="h-[120px] max-w-[320px] object-contain"
              onError={() => setGone((before) => new Set(before).add(name))}
            />
          </button>
        ),
      )}
    </div>
  );
}

interface BodyProps {
  message: RolloutMessageView;
  /** The message's text when it is not its content as sent. */
  text?: string;
  kind: 'markdown' | 'plain';
  className?: string;
  open: Openness;
  toggle: () => void;
}

/**
 * The text of a message behind its gates (dashboard.md 5.5, 9): short ones whole; over 4 kB or 200 lines the beginning and a button that
 * names the size; over 200 kB windows of raw lines, read in parts; everything that was cut can be downloaded.
 */
export function Body({ message, text = message.content ?? '', kind, className = '', open, toggle }: BodyProps) {
  const { id } = useRollout();
  const bytes = message.body_bytes;
  const large = bytes !== undefined && bytes > WHOLE_BYTES;
  const wanted = bytes !== undefined && !large && open !== 'folded';
  const whole = useQuery({ ...bodyQuery(id, message.index, message.eventId), enabled: wanted });
  const shown = wanted ? whole.data : text;
  const value = useMemo(() => (kind === 'plain' || /^\s*\[/.test(text) ? parseTree(shown ?? '') : undefined), [kind, shown, text]);
  const words = textOfParts(value);

  const gated = bytes !== undefined || isLong(text);
  const isOpen = large ? open === 'open' : open !== 'folded';
  let content: ReactNode;
  if (large && isOpen) content = <RawLines key={message.eventId} message={message} bytes={bytes} />;
  else if (gated && (!isOpen || shown === undefined))
    content = <Rendered text={preview(text)} kind={large ? 'plain' : kind} className={className} />;
  else if (words !== null) content = <Rendered text={words} kind="markdown" className={className} />;
  else if (value !== undefined) content = <Json text={shown!} value={value} />;
  else content = <Rendered text={shown!} kind={kind} className={className} />;
  return (
    <>
      {content}
      {(!gated || isOpen) && <Images names={imagesOf(shown ?? text)} />}
      {gated && (
        <div className="mt-1 flex flex-wrap gap-4 font-sans text-[12px] leading-[18px]">
          <button type="button" className="link" aria-expanded={isOpen} onClick={toggle}>
            {isOpen ? 'show less' : <ShowAll text={text} bytes={bytes} large={large} />}
          </button>
          {bytes !== undefined && (
            <a className="link" href={bodyUrl(id, message.index, message.eventId)} download={`message-${message.index}.txt`}>
              download
            </a>
          )}
          {wanted && whole.isFetching && <span className="label">reading {formatBytes(bytes)}…</span>}
          {wanted && whole.error && <span className="text-bad">The text could not be read: {whole.error.message}</span>}
        </div>
      )}
    </>
  );
}

function ShowAll({ text, bytes, large }: { text: string; bytes: number | undefined; large: boolean }) {
  if (large) return <>show raw lines ({formatBytes(bytes)})</>;
  if (bytes !== undefined) return <>show all ({formatBytes(bytes)})</>;
  return (
    <>
      show all ({formatBytes(byteLength(text))}, {formatCount(text.split('\n').length)} lines)
    </>
  );
}
