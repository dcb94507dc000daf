import type { MessageBlock } from '@palestra/protocol';
import { useEffect, useMemo, useRef, useState } from 'react';
import { formatBytes } from '../format/number.ts';
import { Gated } from './Gated.tsx';
import { PlainText } from '../text/PlainText.tsx';

/** Formats that a browser draws and that run nothing; SVG is not among them. */
const DRAWN = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const MAX_IMAGE_CHARACTERS = 28_000_000;

function toBlob(data: string, type: string): Blob | null {
  try {
    const text = atob(data);
    return new Blob([Uint8Array.from(text, (character) => character.charCodeAt(0))], { type });
  } catch {
    return null;
  }
}

/** An image out of a result: its bytes only, nothing is loaded from anywhere. */
export function BlockImage({ data, mimeType }: { data: string; mimeType: string }) {
  const image = useRef<HTMLImageElement>(null);
  const [size, setSize] = useState('');
  const [broken, setBroken] = useState(false);
  const drawn = DRAWN.has(mimeType) && data.length <= MAX_IMAGE_CHARACTERS;
  const blob = useMemo(() => (drawn ? toBlob(data, mimeType) : null), [data, mimeType, drawn]);
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
        {drawn ? 'An image that cannot be read' : 'An image that is not drawn here'}: {mimeType}, {bytes}
      </p>
    );
  return (
    <figure>
      <img
        ref={image}
        alt={`Part of the result, ${mimeType}`}
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

/** Text of a stranger, gated where it is long. */
export function LongText({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  return <Gated text={text} open={open} toggle={() => setOpen(!open)} render={(shown) => <PlainText text={shown} />} />;
}

/** Blocks of a prompt or a result, in their order, as the text and the images that they are. */
export function Blocks({ blocks, prose = false }: { blocks: readonly MessageBlock[]; prose?: boolean }) {
  const face = prose ? 'max-w-[84ch] text-[14px] leading-[22px]' : 'mono';
  return (
    <div className="flex min-w-0 flex-col gap-2">
      {blocks.map((block, index) =>
        block.type === 'image' ? (
          <BlockImage key={index} data={block.data} mimeType={block.mimeType} />
        ) : block.type === 'text' || block.type === 'reasoning' ? (
          <div key={index} className={`whitespace-pre-wrap [overflow-wrap:anywhere] ${face}`}>
            <LongText text={block.text} />
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
