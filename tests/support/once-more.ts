/** `retry` of tests of several processes: once more, after a moment, and only in CI, whose runner names every test that needed it (`flaky:` in .ci/run). */
export const onceMore = process.env['CI'] ? { count: 1, delay: 2_000 } : 0;
