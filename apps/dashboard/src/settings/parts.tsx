import type { ReactNode } from 'react';

/** A section of a settings page: title, explanation, controls. */
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

/** Explains to members why they cannot change the settings. */
export function OwnersOnly() {
  return (
    <p className="border-b border-line bg-paper-1 px-4 py-2 text-ink-2">
      Only owners of the organisation can change this. An owner can make you an owner under Members.
    </p>
  );
}
