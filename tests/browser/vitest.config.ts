import { defineConfig } from 'vitest/config';

const conditions = ['@palestra/source', 'node'];

/** The built dashboard in Debian's Chromium against the built service: `npm run test:browser`. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    name: 'browser',
    root: import.meta.dirname,
    include: ['*.spec.ts'],
    // Files of one worker share its modules, and by them one running service (`sharedPalestra`).
    isolate: false,
    // Read by the service that files share: messages that did not come are missing after 5 s instead of 30.
    env: { PALESTRA_GAP_GRACE_S: '5' },
    setupFiles: ['./close-contexts.ts'],
    globalSetup: ['../support/postgres.global.ts'],
    // What a busy machine needs, here and in browser.ts (`setDefaultTimeout`); Vitest's own second is not enough.
    testTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    hookTimeout: 180_000,
    // Two services and two browsers: pages wait for the service, and tests for pages, so that one alone leaves the second core idle.
    maxWorkers: 2,
    retry: 0,
  },
});
