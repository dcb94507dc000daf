import { createContext, type ReactNode, useContext, useEffect } from 'react';
import { createPortal } from 'react-dom';
import { useGuest } from './guest.ts';

/** The element of the frame in which pages render their top bar. */
export const TopBarSlot = createContext<HTMLElement | null>(null);

/** The top bar of a page: breadcrumb at the left, actions at the right. Also sets the title of the browser tab. */
export function TopBar({ title, crumbs, children }: { title: string; crumbs: ReactNode; children?: ReactNode }) {
  const slot = useContext(TopBarSlot);
  useEffect(() => {
    document.title = `${title} · Palestra`;
  }, [title]);
  const guest = useGuest();
  if (!slot) return null;
  // Guests have no breadcrumb and no actions.
  if (guest) return createPortal(<h1 className="min-w-0 truncate strong">{title}</h1>, slot);
  return createPortal(
    <>
      <nav aria-label="Breadcrumb" className="flex min-w-0 items-center gap-[6px] whitespace-nowrap text-ink-3">
        {crumbs}
      </nav>
      <div className="ml-auto flex flex-none items-center gap-2 max-[560px]:ml-0 max-[560px]:min-w-0 max-[560px]:flex-initial max-[560px]:flex-wrap">
        {children}
      </div>
    </>,
    slot,
  );
}

export function Crumb({ children }: { children: ReactNode }) {
  return <h1 className="truncate text-ink-1 strong">{children}</h1>;
}
export const Slash = () => <span aria-hidden="true">/</span>;
