import type { ReactNode } from 'react';
import { CopyButton } from './CopyButton.tsx';

const HASHED = 'Copy it now. It is shown only once, because the server stores only its hash.';

/** A new key, link or secret, which the server shows once. `note`: what the reader must know; default: that only its hash is stored. */
export function ShownOnce({
  title,
  text,
  note = HASHED,
  children,
}: {
  title: ReactNode;
  text: string;
  note?: string;
  children?: ReactNode;
}) {
  return (
    <div role="status" className="flex min-w-0 flex-col gap-2 rounded-[4px] border border-line bg-paper-1 p-3">
      <span className="strong">{title}</span>
      <span className="flex min-w-0 items-center gap-2">
        <code className="min-w-0 flex-1 overflow-x-auto rounded-[3px] bg-good-wash px-2 py-1 whitespace-nowrap select-all" tabIndex={0}>
          {text}
        </code>
        <CopyButton text={text} />
      </span>
      <span className="label">{note}</span>
      {children}
    </div>
  );
}
