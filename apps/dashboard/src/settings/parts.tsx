import type { ReactNode } from 'react';

/** A part of a page of settings: what it is about at the left, its controls below. */
export function Panel({ title, about, children }: { title: string; about?: ReactNode; children: ReactNode }) {
  return (
    <section aria-label={title} className="flex flex-col gap-3 border-b border-line px-4 py-4">
      <div>
        <h2 className="strong">{title}</h2>
        {about && <p className="max-w-[84ch] text-ink-3">{about}</p>}
      </div>
      {children}
    </section>
  );
}

/** Why nothing can be changed here. */
export function OwnersOnly() {
  return (
    <p className="border-b border-line bg-paper-1 px-4 py-2 text-ink-2">
      You can read this, not change it: that is for owners of the organisation. An owner can make you one under Members.
    </p>
  );
}
