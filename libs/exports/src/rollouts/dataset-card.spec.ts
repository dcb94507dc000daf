import { expect, test } from 'vitest';
import { addFigures, datasetCard, noFigures, rewardStd } from '../index.ts';
import { rollout } from './rollout-files.fixture.ts';

test('figures go on after a pause, count nobody twice, and leave nulls out', () => {
  const whole = noFigures();
  let paused = noFigures();
  for (const [k, reward] of [1, null, 0, 0.25].entries()) {
    const row = rollout(k, { reward, failure: k === 3 ? 'environment' : null });
    addFigures(whole, row);
    addFigures(paused, row);
    paused = JSON.parse(JSON.stringify(paused));
  }
  expect(paused).toEqual(whole);
  expect(whole).toMatchObject({ rollouts: 4, scored: 3, effective: 2, environments: { 'acme/whodunit@3': 4 }, normalisers: { 1: 4 } });
  expect(whole.reward.mean).toBeCloseTo(5 / 12, 12);
  expect(rewardStd(whole)).toBeCloseTo(0.520416, 6);
});

test('names of every object are names like others', () => {
  const figures = noFigures();
  for (const name of ['constructor', '__proto__', 'constructor', '__proto__'])
    addFigures(figures, rollout(0, { run: name, environment: null }));
  expect(JSON.stringify(figures.runs)).toBe('{"constructor":2,"__proto__":2}');
});

test('a name with control characters leaves the card YAML', () => {
  const figures = noFigures();
  const run = 'a\u007f\u0080\u0085\u2028\uffffz';
  addFigures(figures, rollout(0, { run }));
  const lineage = { export_id: 'e', format: 'hf', org: 'acme', query: '', canonical_query: '', lens: 'canonical', lens_rule: 'r' } as const;
  const card = datasetCard({ ...lineage, run, redacted: false, as_of: '1', created_at: '2026-11-23T00:00:00.000Z' }, figures);
  const [, matter] = card.split('---\n');
  expect(matter).toContain(String.raw`a\u007f\u0080\u0085\u2028\uffffz`);
  expect(matter).toMatch(/^[\n\x20-\x7e]*$/);
  // Readers warn of splits without their size in memory, which nobody knows here.
  expect(matter).not.toContain('splits:');
});

test('a name cannot break out of the card', () => {
  const figures = noFigures();
  addFigures(figures, rollout(0, { environment: 'a/b\n---\n# hello <script>' }));
  const card = datasetCard(
    {
      export_id: 'e',
      format: 'hf',
      org: 'acme',
      run: 'x"\n---\nlicense: mit',
      query: 'q',
      canonical_query: 'q',
      lens: 'canonical',
      lens_rule: 'a rule\n# with <b>',
      redacted: false,
      as_of: '9',
      created_at: '2026-01-01T00:00:00.000Z',
    },
    figures,
  );
  expect(card.match(/^---$/gm)).toHaveLength(2);
  expect(card.match(/^license:/gm)).toHaveLength(1);
  expect(card).not.toContain('<script>');
});
