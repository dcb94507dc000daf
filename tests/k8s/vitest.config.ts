import { defineConfig } from 'vitest/config';

const conditions = ['@palestra/source', 'node'];

/** A real control plane of Kubernetes, whose pods Podman runs: `npm run test:k8s`. `.ci/machine.sh` builds the program. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    name: 'k8s',
    root: import.meta.dirname,
    include: ['*.spec.ts'],
    isolate: false,
    globalSetup: ['../support/postgres.global.ts'],
    testTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    hookTimeout: 180_000,
    // A control plane needs 700 MB.
    maxWorkers: 1,
    retry: 0,
  },
});
