import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { normaliseRollout } from './normalise.ts';
import { rawRollouts, synthesised } from './raw-rollouts.fixture.ts';

/**
 * Normalised results of recorded uploads of the unmodified integrations, and of the other integrations
 * (docs/reference/metrics.md#integrations). PALESTRA_WRITE_GOLDEN=1 writes the results again; read them before you commit them.
 */
const fixtures = path.join(import.meta.dirname, 'fixtures');
const recorded = ['skyrl-adapter', 'sdk-tour', 'sdk-tour-0.1.167', 'rollout-edge-cases'];
const bodiesOf = (name: string): string[] =>
  synthesised[name] ?? (JSON.parse(readFileSync(path.join(fixtures, `${name}.uploads.json`), 'utf8')) as string[]);

describe('golden normalised results', () => {
  it.each([...recorded, ...Object.keys(synthesised)])('%s', (name) => {
    const results = rawRollouts(bodiesOf(name)).map((raw) => normaliseRollout(raw));
    const file = path.join(fixtures, `${name}.golden.json`);
    if (process.env.PALESTRA_WRITE_GOLDEN === '1') writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);
    expect(results.length).toBeGreaterThan(0);
    expect(results).toEqual(JSON.parse(readFileSync(file, 'utf8')));
  });

  it('comes out the same when batches arrive in any order and twice', () => {
    const bodies = bodiesOf('rollout-edge-cases');
    const results = rawRollouts([...bodies.toReversed(), ...bodies]).map((raw) => normaliseRollout(raw));
    const golden = JSON.parse(readFileSync(path.join(fixtures, 'rollout-edge-cases.golden.json'), 'utf8')) as { id: string }[];
    expect(results.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(golden.toSorted((a, b) => (a.id < b.id ? -1 : 1)));
  });
});
