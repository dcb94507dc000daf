import { expect } from 'vitest';
import { runScript } from './python.ts';

/** Runs sandbox_tour.py, and compares what the unmodified client saw. `given`: its arguments. */
export async function expectSandboxTour(
  given: [deployment: string, image: string, url: string],
  env: Record<string, string>,
): Promise<void> {
  expect(await runScript('v167', 'sandbox_tour.py', given, env)).toMatchObject({
    run: ['hello there sk-of-the-author', 3],
    timeout: [124, true],
    own_124: [124, false],
    cut: ['abcd', true],
    files: {
      downloads: [true, true, true, true],
      digests: [true, true, true, 9_000_000],
      stat: true,
      refusals: [
        expect.stringContaining('not a regular file'),
        expect.stringContaining('no such file'),
        expect.stringContaining('symlink'),
      ],
    },
    bucket: 'of the bucket\ntask.txt',
    sidecar: 'db',
    network: [
      '200 GET /simple/numpy/',
      expect.stringContaining('403 Palestra: blocked by sandbox network policy'),
      expect.stringContaining('403'),
    ],
    replaced: '200 GET /other',
    no_policy: expect.stringContaining('without network='),
    blocked: '--',
    unenforceable: expect.stringContaining('HTTPS hides'),
    missing_image: expect.stringContaining('localhost/palestra-test/none:1'),
    unknown: expect.stringMatching(/404.*idontexist.*GeneralReasoning/),
    gpu: expect.stringContaining('GPU'),
  });
}
