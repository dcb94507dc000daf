export const ALERT_TABS = [
  { name: 'list', label: 'Alerts' },
  { name: 'history', label: 'History' },
  { name: 'webhooks', label: 'Webhooks' },
] as const;
export type AlertTab = (typeof ALERT_TABS)[number]['name'];

/** Parses the tab of the address; undefined, the first tab, for other values. */
export const readAlertTab = (value: unknown): AlertTab | undefined => ALERT_TABS.find(({ name }) => name === value)?.name;
