/** The first version with tasksets and without `load_environment`. */
const TASKSETS = 0.04;

/**
 * Which library of `palestra.serve` plays a package of verifiers: by the versions that the package accepts (`specifier`, such as `>=0.1.9,<0.4`),
 * and where these say nothing by what its module defines.
 */
export function verifiersLibrary(specifier: string, definesEnvironment: boolean): 'verifiers' | 'verifiers-legacy' {
  const bounds = [...specifier.matchAll(/(===?|~=|>=?|<=?)\s*(\d+)(?:\.(\d+))?(\.\d)?/g)].map(([, operator = '', major, minor, patch]) => ({
    // 0.4 is 0.04, and 0.10 is 0.1.
    version: Number(major) + Number(minor ?? 0) / 100,
    isLowest: operator.startsWith('>') || operator.startsWith('=') || operator === '~=',
    // `~=0.1.9` ends before 0.2, `~=0.1` before 1.
    isHighest: operator.startsWith('=') || operator === '<=' || (operator === '~=' && patch !== undefined),
    isBelow: operator === '<',
  }));
  if (bounds.some(({ version, isLowest }) => isLowest && version >= TASKSETS)) return 'verifiers';
  const isOlder = bounds.some(({ version, isHighest, isBelow }) => (isHighest && version < TASKSETS) || (isBelow && version <= TASKSETS));
  return isOlder || definesEnvironment ? 'verifiers-legacy' : 'verifiers';
}
