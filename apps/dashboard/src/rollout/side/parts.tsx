import type { ReactNode } from 'react';

export function Section({ title, children }: { title?: string; children: ReactNode }) {
  return (
    <section className="border-b border-line px-3 py-[10px]">
      {title && <h2 className="strong mb-1">{title}</h2>}
      {children}
    </section>
  );
}

/** Names and values in two columns. */
export function PropertyList({ items }: { items: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className="grid grid-cols-[104px_minmax(0,1fr)] gap-x-[10px] gap-y-[3px] text-[12px]">
      {items.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="truncate text-ink-3" title={name}>
            {name}
          </dt>
          <dd className="min-w-0 break-words">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
