import { defineConfig } from 'vitest/config';
import { full } from '../support/full.ts';
import { LongestFirst } from '../support/longest-first.ts';

const conditions = ['@palestra/source', 'node'];

/** The official Python packages against the built service: `npm run conformance`. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    name: 'conformance',
    root: import.meta.dirname,
    include: ['*.spec.ts', 'trainers/*.spec.ts'],
    // The trainers that need torch: with CI_FULL=1.
    exclude: full ? [] : ['trainers/*.torch.spec.ts'],
    // Files of one worker share its modules, and by them one running service (`sharedPalestra`).
    isolate: false,
    globalSetup: ['../support/postgres.global.ts'],
    testTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    hookTimeout: 240_000,
    // A service, a PostgreSQL and a Python server each: more would make clients run out of retries while a service starts again.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
  },
});
