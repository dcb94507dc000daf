import { defineConfig } from 'vitest/config';

const conditions = ['@palestra/source', 'node'];

/** The built dashboard in Chromium against the built service: `npm run test:browser`. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    name: 'browser',
    root: import.meta.dirname,
    include: ['*.spec.ts'],
    // Files of one worker share its modules and so one running service (`sharedPalestra`).
    isolate: false,
    // Setting of the shared service: missing messages count as missing after 5 s instead of 30 s.
    env: { PALESTRA_GAP_GRACE_S: '5' },
    setupFiles: ['./close-contexts.ts'],
    globalSetup: ['../support/postgres.global.ts'],
    // Timeouts for a busy machine, here and in browser.ts (`setDefaultTimeout`). The default second of Vitest is too short.
    testTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    hookTimeout: 180_000,
    // Two workers: pages wait for the service and tests for pages, so that one worker leaves the second core idle.
    maxWorkers: 2,
    retry: 0,
  },
});
