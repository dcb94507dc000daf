import type { MessageBlock } from '@palestra/protocol';
import { useEffect, useMemo, useRef, useState } from 'react';
import { formatBytes } from '../format/number.ts';
import { MessageText } from '../text/MessageText.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { TruncatedText } from './TruncatedText.tsx';

/** Formats without scripts. SVG can have scripts. */
const SAFE_IMAGE_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const MAX_IMAGE_CHARACTERS = 28_000_000;

function toBlob(data: string, type: string): Blob | null {
  try {
    const text = atob(data);
    return new Blob([Uint8Array.from(text, (character) => character.charCodeAt(0))], { type });
  } catch {
    return null;
  }
}

/** An image of a result, drawn from its own bytes. Nothing is loaded from a URL. */
export function BlockImage({ data, mimeType }: { data: string; mimeType: string }) {
  const image = useRef<HTMLImageElement>(null);
  const [size, setSize] = useState('');
  const [broken, setBroken] = useState(false);
  const supported = SAFE_IMAGE_TYPES.has(mimeType) && data.length <= MAX_IMAGE_CHARACTERS;
  const blob = useMemo(() => (supported ? toBlob(data, mimeType) : null), [data, mimeType, supported]);
  useEffect(() => {
    if (blob === null || image.current === null) return;
    const url = URL.createObjectURL(blob);
    image.current.src = url;
    return () => URL.revokeObjectURL(url);
  }, [blob]);
  const bytes = formatBytes(Math.floor((data.length * 3) / 4));
  if (blob === null || broken)
    return (
      <p className="label">
        {supported ? 'Invalid image' : 'Image type is not supported'}: {mimeType}, {bytes}
      </p>
    );
  return (
    <figure>
      <img
        ref={image}
        alt={`Image in the result, ${mimeType}`}
        className="max-h-[420px] max-w-full rounded-[4px] border border-line bg-paper-1"
        onLoad={({ currentTarget }) => setSize(`${currentTarget.naturalWidth} × ${currentTarget.naturalHeight}, `)}
        onError={() => setBroken(true)}
      />
      <figcaption className="label mt-[2px]">
        {mimeType.slice(6)}, {size}
        {bytes}
      </figcaption>
    </figure>
  );
}

/** Untrusted text; long text is truncated. */
export function LongText({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  return <TruncatedText text={text} open={open} toggle={() => setOpen(!open)} render={(shown) => <PlainText text={shown} />} />;
}

function LongMarkdown({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  const toggle = () => setOpen(!open);
  return (
    <TruncatedText
      text={text}
      open={open}
      toggle={toggle}
      render={(shown) => <MessageText text={shown} kind="markdown" className="reading" />}
    />
  );
}

/** The blocks of a prompt (`prose`: Markdown) or of a result: texts and images. */
export function Blocks({ blocks, prose = false }: { blocks: readonly MessageBlock[]; prose?: boolean }) {
  return (
    <div className="flex min-w-0 flex-col gap-2">
      {blocks.map((block, index) =>
        block.type === 'image' ? (
          <BlockImage key={index} data={block.data} mimeType={block.mimeType} />
        ) : block.type === 'text' || block.type === 'reasoning' ? (
          <div key={index} className={prose ? '' : 'mono whitespace-pre-wrap [overflow-wrap:anywhere]'}>
            {prose ? <LongMarkdown text={block.text} /> : <LongText text={block.text} />}
          </div>
        ) : (
          <pre key={index} className="mono whitespace-pre-wrap [overflow-wrap:anywhere]">
            <LongText text={JSON.stringify(block, null, 2)} />
          </pre>
        ),
      )}
    </div>
  );
}
