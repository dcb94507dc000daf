import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './tests/support/longest-first.ts';

const shared = {
  resolve: { conditions: ['@palestra/source', 'node'] },
  ssr: { resolve: { conditions: ['@palestra/source', 'node'] } },
};

/**
 * Files at the same time. Integration files wait (for leases, sweeps, processes that start) more than they compute, so three of them keep
 * two cores busy. `PALESTRA_TEST_WORKERS` sets another number.
 */
const maxWorkers = Number(process.env['PALESTRA_TEST_WORKERS'] ?? Math.max(3, Math.min(6, Math.floor(availableParallelism() / 2))));

export default defineConfig({
  test: {
    experimental: { fsModuleCache: true },
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        ...shared,
        test: {
          name: 'unit',
          isolate: false,
          include: ['libs/**/*.spec.ts', 'apps/**/*.spec.ts', 'tests/*.spec.ts'],
          exclude: ['**/node_modules/**', '**/dist/**'],
          // A guard against hangs: a machine that also does other work is slow.
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 30_000 } },
          maxWorkers,
        },
      },
      {
        ...shared,
        test: {
          name: 'integration',
          // Files of one worker share its modules, and by them one running service (`sharedServer`).
          isolate: false,
          include: ['tests/integration/**/*.spec.ts', 'tests/acceptance/**/*.spec.ts', 'tests/security/**/*.spec.ts'],
          globalSetup: ['tests/support/postgres.global.ts'],
          testTimeout: 120_000,
          expect: { poll: { timeout: 30_000 } },
          hookTimeout: 180_000,
          maxWorkers,
        },
      },
    ],
  },
});
