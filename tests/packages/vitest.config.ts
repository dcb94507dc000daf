import { defineConfig } from 'vitest/config';

const conditions = ['@palestra/source', 'node'];

/** The packages as npm would publish them, installed in empty folders: `npm run test:packages`. Needs a build. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    name: 'packages',
    root: import.meta.dirname,
    include: ['*.spec.ts'],
    globalSetup: ['./pack.global.ts'],
    testTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    hookTimeout: 300_000,
    maxWorkers: 2,
  },
});
