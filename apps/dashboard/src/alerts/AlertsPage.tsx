import { useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { Crumb, SearchTabs, TopBar } from '../frame/page.tsx';
import { AlertDialog } from './AlertDialog.tsx';
import { AlertList } from './AlertList.tsx';
import { newForm } from './form-state.ts';
import { HistoryTab } from './HistoryTab.tsx';
import { ALERT_TABS } from './tabs.ts';
import { WebhooksTab } from './WebhooksTab.tsx';

const pages = { list: AlertList, history: HistoryTab, webhooks: WebhooksTab };

/** Alerts of the organisation, their history, and the receivers of webhooks. */
export function AlertsPage() {
  const { tab = 'list' } = useSearch({ from: '/alerts' });
  const [creating, setCreating] = useState(false);
  const Page = pages[tab];
  return (
    <>
      <TopBar title="Alerts" crumbs={<Crumb>Alerts</Crumb>}>
        <button type="button" className="button primary" onClick={() => setCreating(true)}>
          New alert
        </button>
      </TopBar>
      <div className="flex h-full min-h-0 flex-col">
        <SearchTabs label="Alerts" tabs={ALERT_TABS} current={tab} />
        <div className="min-h-0 flex-1 overflow-auto">
          <Page />
        </div>
      </div>
      {creating && <AlertDialog initial={newForm()} onClose={() => setCreating(false)} />}
    </>
  );
}
