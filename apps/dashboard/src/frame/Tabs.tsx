import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { formatCount } from '../format/number.ts';

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
