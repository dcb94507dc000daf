import { Link, useSearch } from '@tanstack/react-router';
import { Crumb, TopBar } from '../frame/page.tsx';
import { AppearanceTab } from './AppearanceTab.tsx';
import { AuditTab } from './AuditTab.tsx';
import { BrowsersTab } from './BrowsersTab.tsx';
import { KeyboardTab } from './KeyboardTab.tsx';
import { MembersTab } from './MembersTab.tsx';
import { OrganisationTab } from './OrganisationTab.tsx';
import { SharesTab } from './SharesTab.tsx';
import { SETTINGS_TABS } from './tabs.ts';

const pages = {
  organisation: OrganisationTab,
  members: MembersTab,
  shares: SharesTab,
  browsers: BrowsersTab,
  audit: AuditTab,
  appearance: AppearanceTab,
  keyboard: KeyboardTab,
};

/** Settings of the organisation and of this browser. */
export function SettingsPage() {
  const tab = useSearch({ from: '/settings' }).tab ?? 'organisation';
  const Page = pages[tab];
  return (
    <>
      <TopBar title="Settings" crumbs={<Crumb>Settings</Crumb>} />
      <div className="flex h-full min-h-0 flex-col">
        <nav aria-label="Settings" className="flex h-[40px] flex-none items-center gap-1 overflow-x-auto border-b border-line px-3">
          {SETTINGS_TABS.map(({ name, label }) => (
            <Link
              key={name}
              to="/settings"
              search={{ tab: name === 'organisation' ? undefined : name }}
              activeOptions={{ exact: true }}
              aria-current={tab === name ? 'page' : undefined}
              className={`flex h-[28px] items-center rounded-[4px] px-2 hover:bg-paper-2 ${tab === name ? 'bg-paper-2 strong' : 'text-ink-2'}`}
            >
              {label}
            </Link>
          ))}
        </nav>
        <div className="min-h-0 flex-1 overflow-auto">
          <Page />
        </div>
      </div>
    </>
  );
}
