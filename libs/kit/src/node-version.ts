/** `engines` of every package. Import this file first: it throws where other files fail with less clear errors. */
export const SUPPORTED_NODE = '^20.19.0 || >=22.12.0';

export function isSupportedNode(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major === 20 ? minor >= 19 : major === 22 ? minor >= 12 : major > 22;
}

// Browsers have no `process`.
const version = typeof process === 'undefined' ? undefined : process.versions?.node;
if (version !== undefined && !isSupportedNode(version))
  throw new Error(`Palestra needs Node.js ${SUPPORTED_NODE}, and this is v${version}.`);
