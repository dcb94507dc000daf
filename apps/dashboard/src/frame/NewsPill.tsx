import type { ReactNode } from 'react';
import type { News } from '../data/news.ts';
import { formatCount } from '../format/number.ts';

/** Offers new data. A list does not change until the reader clicks (ADR 17). */
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

/** `noun`: the plural noun of the list, for the tooltip. */
export function NewsPill({ news, noun, onShow }: { news: News; noun: string; onShow: () => void }) {
  if (news.fresh === 0 && !news.changed) return null;
  return (
    <Pill title={`${news.fresh > 0 ? `There are new ${noun}. ` : ''}Click to refresh`} onShow={onShow}>
      {news.fresh > 0 ? `${formatCount(news.fresh)} new` : 'Figures changed: refresh'}
    </Pill>
  );
}
