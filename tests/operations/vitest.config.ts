import { defineConfig } from 'vitest/config';

const conditions = ['@palestra/source', 'node'];

/** What operators do with the service: images, compose, backups, the chart. `npm run test:operations`. Needs a build, and what `.ci/run` installs. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    name: 'operations',
    root: import.meta.dirname,
    include: ['*.spec.ts'],
    globalSetup: ['../support/postgres.global.ts', './images.global.ts'],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    maxWorkers: 2,
  },
});
