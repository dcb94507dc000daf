import type { ReactNode } from 'react';

/** A list, and the details of its selected row: beside it, or below it in a narrow window. Both scroll. `details`: null without a selection. */
export function ListAndDetails({ list, details }: { list: ReactNode; details: ReactNode }) {
  return (
    <div className="flex h-full min-h-0 max-[900px]:flex-col">
      <div className={`min-h-0 min-w-0 flex-1 ${details ? 'max-[900px]:max-h-[34%] max-[900px]:flex-none' : ''}`}>{list}</div>
      {details}
    </div>
  );
}

export function Details({ label, children }: { label: string; children: ReactNode }) {
  return (
    <aside
      aria-label={label}
      className="flex w-[380px] min-h-0 flex-none flex-col gap-4 overflow-y-auto border-l border-line bg-paper-1 p-4 max-[900px]:w-full max-[900px]:flex-1 max-[900px]:border-l-0 max-[900px]:border-t min-[1700px]:w-[520px]"
    >
      {children}
    </aside>
  );
}
