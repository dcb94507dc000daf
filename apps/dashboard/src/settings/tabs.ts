export const SETTINGS_TABS = [
  { name: 'organisation', label: 'Organisation' },
  { name: 'members', label: 'Members' },
  { name: 'shares', label: 'Shared links' },
  { name: 'browsers', label: 'Browsers' },
  { name: 'audit', label: 'Audit log' },
  { name: 'appearance', label: 'Appearance' },
  { name: 'keyboard', label: 'Keyboard' },
] as const;
export type SettingsTab = (typeof SETTINGS_TABS)[number]['name'];

/** Parses the tab of the address; undefined, the first tab, for other values. */
export const readSettingsTab = (value: unknown): SettingsTab | undefined => SETTINGS_TABS.find(({ name }) => name === value)?.name;
