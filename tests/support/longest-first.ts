import path from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The slowest test files, slowest first. If one of them starts last, the other workers idle; a clean clone has no recorded durations. */
const LONGEST = [
  'tests/conformance/suites.spec.ts',
  'tests/conformance/orwd.spec.ts',
  'tests/conformance/recordings.spec.ts',
  'tests/conformance/mcp.spec.ts',
  // After the suites, which measure how soon the service answers: it kills and starts services.
  'tests/conformance/chaos.spec.ts',
  'tests/conformance/env-images.spec.ts',
  'tests/conformance/lake.spec.ts',
  'tests/conformance/outage.spec.ts',
  'tests/acceptance/boot.spec.ts',
  'tests/integration/store/sealing-survives.spec.ts',
  'tests/integration/store/sealing.spec.ts',
  'tests/integration/store/erasing.spec.ts',
  'tests/integration/exports/rollout-exports.spec.ts',
  'tests/integration/store/verified.spec.ts',
  'tests/integration/sessions/recording.spec.ts',
  'tests/integration/store/bad-uploads.spec.ts',
  'tests/integration/store/rollups-property.spec.ts',
];
const root = path.resolve(import.meta.dirname, '../..');

function rankOf({ moduleId }: TestSpecification): number {
  const rank = LONGEST.indexOf(path.relative(root, moduleId));
  return rank === -1 ? LONGEST.length : rank;
}

/**
 * These files first, then the others of each project together, because a worker keeps its modules and its service only between files of
 * one project.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => a.project.name.localeCompare(b.project.name) || rankOf(a) - rankOf(b));
  }
}
