const BROWSERS: readonly [name: string, mark: RegExp][] = [
  // Others name Chrome and Safari too.
  ['Edge', /\bEdg(?:e|A|iOS)?\//],
  ['Opera', /\bOPR\//],
  ['Firefox', /\b(?:Firefox|FxiOS)\//],
  ['Chrome', /\b(?:Headless)?Chrome\/|\bCriOS\//],
  ['Safari', /\bSafari\//],
];
const SYSTEMS: readonly [name: string, mark: RegExp][] = [
  ['Android', /\bAndroid\b/],
  ['iOS', /\b(?:iPhone|iPad|iPod)\b/],
  ['Windows', /\bWindows\b/],
  ['macOS', /\bMac OS X\b/],
  ['Linux', /\bLinux\b/],
];
const find = (names: readonly [string, RegExp][], agent: string) => names.find(([, mark]) => mark.test(agent))?.[0];

/** `Firefox on Linux`; the User-Agent itself where it is of no browser that we know. */
export function browserName(agent: string): string {
  const [browser, system] = [find(BROWSERS, agent), find(SYSTEMS, agent)];
  if (browser === undefined) return agent === '' ? 'Unknown browser' : agent;
  return system === undefined ? browser : `${browser} on ${system}`;
}
