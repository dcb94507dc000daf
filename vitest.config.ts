import { defineConfig } from 'vitest/config';

const shared = {
  resolve: { conditions: ['@palestra/source', 'node'] },
  ssr: { resolve: { conditions: ['@palestra/source', 'node'] } },
};

export default defineConfig({
  test: {
    projects: [
      {
        ...shared,
        test: {
          name: 'unit',
          include: ['libs/**/*.spec.ts', 'apps/**/*.spec.ts', 'tests/*.spec.ts'],
          exclude: ['**/node_modules/**', '**/dist/**'],
        },
      },
      {
        ...shared,
        test: {
          name: 'integration',
          include: ['tests/integration/**/*.spec.ts', 'tests/acceptance/**/*.spec.ts'],
          globalSetup: ['tests/support/postgres.global.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
