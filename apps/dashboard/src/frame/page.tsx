import { Link } from '@tanstack/react-router';
import { createContext, type ReactNode, useContext, useEffect } from 'react';
import { createPortal } from 'react-dom';
import { formatCount } from '../format/number.ts';
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

/** `label`: the text, where the content is not only text. */
export function Crumb({ label, children }: { label?: string; children: ReactNode }) {
  return (
    <h1 className="min-w-0 truncate text-ink-1 strong" aria-label={label}>
      {children}
    </h1>
  );
}
export const Slash = () => <span aria-hidden="true">/</span>;

/** The look of a tab, a link in `TabBar`. */
export const tabStyle =
  'flex h-[34px] flex-none items-center gap-[6px] border-b-2 border-transparent px-[10px] text-ink-2 hover:text-ink-1 aria-[current=page]:border-accent aria-[current=page]:font-[550] aria-[current=page]:text-ink-1';

/** The tabs of a page below the top bar. They wrap in a narrow window, so that none is out of sight. `aside`: controls at the right. */
export function TabBar({ label, children, aside }: { label: string; children: ReactNode; aside?: ReactNode }) {
  return (
    <div className="flex flex-none flex-wrap items-center border-b border-line">
      <nav aria-label={label} className="flex min-w-0 max-w-full flex-wrap px-[6px]">
        {children}
      </nav>
      {aside}
    </div>
  );
}

interface SearchTabsProps<Name extends string> {
  label: string;
  /** The first one is shown when the address names none. */
  tabs: readonly { name: Name; label: string; count?: number | null | undefined }[];
  current: Name;
  /** The part of the address that stays when the tab changes. */
  keep?: (search: Record<string, unknown>) => object;
  aside?: ReactNode;
}

/** Tabs that the parameter `tab` of the address chooses from. */
export function SearchTabs<Name extends string>({ label, tabs, current, keep = () => ({}), aside }: SearchTabsProps<Name>) {
  return (
    <TabBar label={label} aside={aside}>
      {tabs.map(({ name, label: text, count }, index) => (
        <Link
          key={name}
          to="."
          search={(before: Record<string, unknown>) => ({ ...keep(before), tab: index === 0 ? undefined : name }) as never}
          activeOptions={{ exact: true }}
          aria-current={name === current ? 'page' : undefined}
          className={tabStyle}
        >
          {text}
          {typeof count === 'number' && <span className="label tabular-nums">{formatCount(count)}</span>}
        </Link>
      ))}
    </TabBar>
  );
}
