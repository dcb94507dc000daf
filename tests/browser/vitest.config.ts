import { defineConfig } from 'vitest/config';
import { onceMore } from '../support/once-more.ts';

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
    globalSetup: ['../support/postgres.global.ts'],
    testTimeout: 60_000,
    // What a busy machine needs; Vitest's own second is none.
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 180_000,
    maxWorkers: 1,
    retry: onceMore,
  },
});
