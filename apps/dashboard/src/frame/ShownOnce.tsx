import type { ReactNode } from 'react';
import { CopyButton } from './CopyButton.tsx';

/** A new key or link. The server shows it once and stores only its hash. */
export function ShownOnce({ title, text, children }: { title: ReactNode; text: string; children?: ReactNode }) {
  return (
    <div role="status" className="flex min-w-0 flex-col gap-2 rounded-[4px] border border-line bg-paper-1 p-3">
      <span className="strong">{title}</span>
      <span className="flex min-w-0 items-center gap-2">
        <code className="min-w-0 flex-1 overflow-x-auto rounded-[3px] bg-good-wash px-2 py-1 whitespace-nowrap select-all" tabIndex={0}>
          {text}
        </code>
        <CopyButton text={text} />
      </span>
      <span className="label">Copy it now. It is shown only once, because the server stores only its hash.</span>
      {children}
    </div>
  );
}
