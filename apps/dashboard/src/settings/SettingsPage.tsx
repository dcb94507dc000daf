import { useSearch } from '@tanstack/react-router';
import { Crumb, SearchTabs, TopBar } from '../frame/page.tsx';
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
        <SearchTabs label="Settings" tabs={SETTINGS_TABS} current={tab} />
        <div className="min-h-0 flex-1 overflow-auto">
          <Page />
        </div>
      </div>
    </>
  );
}
