import { defineConfig } from 'vitest/config';
import { LongestFirst } from '../support/longest-first.ts';

const conditions = ['@palestra/source', 'node'];

/** The official Python packages against the built service: `npm run conformance`. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    name: 'conformance',
    root: import.meta.dirname,
    include: ['*.spec.ts'],
    // Files of one worker share its modules, and by them one running service (`sharedPalestra`).
    isolate: false,
    globalSetup: ['../support/postgres.global.ts'],
    testTimeout: 180_000,
    // What a busy machine needs; Vitest's own second is none.
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 240_000,
    // One more than a small machine has cores: many files wait for leases, jobs and timeouts.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
  },
});
