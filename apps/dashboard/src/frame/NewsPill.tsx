import type { ReactNode } from 'react';
import type { News } from '../data/news.ts';
import { formatCount } from '../format/number.ts';

/** What came since a list was read: the list stays as it is until its reader asks for it (ADR 17). */
export function Pill({ title, onShow, children }: { title: string; onShow: () => void; children: ReactNode }) {
  return (
    <button
      type="button"
      className="flex h-[20px] flex-none items-center gap-2 whitespace-nowrap rounded-full bg-accent-wash px-3 text-accent"
      title={title}
      onClick={onShow}
    >
      <span className="live-dot" aria-hidden="true" />
      {children}
    </button>
  );
}

/** `what`: of what there is more, for whoever hears it. */
export function NewsPill({ news, what, onShow }: { news: News; what: string; onShow: () => void }) {
  if (news.fresh === 0 && !news.changed) return null;
  return (
    <Pill title={`${news.fresh > 0 ? `More ${what} came. ` : ''}Read again; until then nothing moves`} onShow={onShow}>
      {news.fresh > 0 ? `${formatCount(news.fresh)} new` : 'figures changed: refresh'}
    </Pill>
  );
}
