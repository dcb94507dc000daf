import { formatReward } from '@palestra/kit/reward-text';
import { randomUUID } from 'node:crypto';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serve } from '@palestra/environment-kit';
import { addRemote, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { expectSoundInEveryView, launch, openPage, type View, visit } from './browser.ts';
import { apiOf, studioOf } from './playground.environments.ts';

/** The pages of an environment: the difficulty of its tasks, and how every tab looks. */
let palestra: SharedPalestra;
let browser: Browser;
let running: Awaited<ReturnType<typeof serve>>;
const light: View = { width: 1280, theme: 'light' };
const api = apiOf(() => palestra);

/** Uploads from which the difficulty of tasks is computed; one rollout is unscored. */
const rewards: Record<number, (number | null)[]> = { 0: [1, 0, 0.5, null], 1: [0, 0], 2: [1, 1, 1] };
async function uploadRewards(runName = 'difficulty', environment = 'studio'): Promise<void> {
  const events = Object.entries(rewards).flatMap(([task, all]) =>
    all.flatMap((reward) => {
      const [rolloutEventId, timestamp] = [randomUUID(), Date.now()];
      const start = {
        eventType: 'rollout',
        eventId: rolloutEventId,
        timestamp,
        runName,
        environment: `${palestra.namespace}/${environment}`,
      };
      const message = {
        eventType: 'message',
        eventId: randomUUID(),
        rolloutEventId,
        timestamp,
        index: 0,
        type: 'assistant_message',
        content: 'x',
      };
      return [
        { ...start, split: 'train', rollout_info: { task_index: Number(task) } },
        { ...message, ...(reward !== null && { reward }), isFinished: true, metadata: {} },
      ];
    }),
  );
  await api('POST', '/v1/rollouts', { events });
}

/** One check of each result, and players from one end of the rewards to the other. */
const report = {
  created_at: '2026-11-27T12:00:00Z',
  kit: '0.1.0',
  reward_range: [0, 1],
  checks: [
    { id: 'runtime.startup', title: 'Every sampled task opens before the deadline', status: 'passed', detail: '20 episodes opened.' },
    {
      id: 'semantic.oracle_max',
      title: 'A solution reaches the maximum reward',
      status: 'skipped',
      detail: 'The environment has no solve(task) and no player named expert. Add one to prove that its tasks can be solved.',
    },
    {
      id: 'static.disjoint_splits',
      title: 'Splits have no task in common',
      status: 'failed',
      detail: 'test 0 is the same task as train 3. Give each task to one split, so that a test measures what was not trained.',
    },
  ],
  players: [
    ['random', 'Calls random tools with random valid arguments.', 0.02, 0.001, 0.09, 0],
    ['naive', 'Looks at the first picture.', 0.41, 0.32, 0.51, 0.3],
    ['expert', 'Reads every word of the picture, and remembers the painter.', 1, 0.96, 1, 1],
  ].map(([name, description, mean, low, high, solved]) => ({
    name,
    description,
    split: 'test',
    tasks: 100,
    samples: 1,
    mean,
    low,
    high,
    solved,
  })),
};

beforeAll(async () => {
  running = await serve([studioOf(() => 'looked')]);
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await addRemote(palestra, 'studio', running.url);
  await uploadRewards();
  await api('PUT', `/v1/environments/${palestra.namespace}/studio/report`, report);
});
afterAll(async () => {
  await running?.close();
});

test('the difficulty of tasks comes from the uploaded rollouts', { timeout: 150_000 }, async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  const shown = async (): Promise<string[][]> =>
    (await page.getByRole('table', { name: 'Tasks of train' }).getByRole('row').all())
      .slice(1)
      .reduce<Promise<string[][]>>(
        async (rows, one) => [...(await rows), await one.getByRole('cell').allInnerTexts()],
        Promise.resolve([]),
      );
  const url = `${palestra.url}/environments/${palestra.namespace}/studio?tab=tasks`;
  const figures = ([index, , n, avg, solved]: string[]) => [index, n, avg, solved];
  const recomputed = Object.entries(rewards).map(([task, all]) => {
    const scored = all.filter((reward) => reward !== null);
    const avg = scored.reduce((sum, reward) => sum + reward, 0) / scored.length;
    const solved = scored.filter((reward) => reward >= 1).length / scored.length;
    const rate = solved === 0 || solved === 1 ? `${100 * solved} %` : `${(100 * solved).toFixed(0)} %`;
    return [task, String(scored.length), formatReward(avg), rate];
  });
  await expect
    .poll(
      async () => {
        await page.goto(url);
        await page.getByText('"harbour"').waitFor();
        await page.getByText(/tasks with rollouts/).waitFor();
        return (await shown()).map(figures);
      },
      { timeout: 40_000 },
    )
    .toEqual(recomputed);
  await page.getByRole('button', { name: /^Mean reward/ }).click();
  await page.waitForURL(/sort=avg/);
  // Its state is in the address, which follows the click: `check` can look before it does.
  await page.getByRole('checkbox', { name: /Only/ }).click();
  await page.waitForURL(/only=mixed/);
  await expect.poll(async () => (await shown()).map(([index]) => index)).toEqual(expect.not.arrayContaining(['2']));
  await page.getByRole('row', { name: /harbour/ }).click();
  const panel = page.getByRole('complementary', { name: 'Task train 0' });
  await panel.getByText('solved 33 % of 3 rollouts').waitFor();
  await panel.getByRole('link', { name: 'difficulty' }).waitFor();
  await page.keyboard.press('Escape');
  await panel.waitFor({ state: 'detached' });
  expect(complaints).toEqual([]);
  await close();
});

test('the page of an environment shows its first run and the difficulty of its tasks without a reload', async () => {
  await addRemote(palestra, 'studio-unused', running.url);
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/environments/${palestra.namespace}/studio-unused?tab=tasks`, '0 of 3 tasks with rollouts');
  await uploadRewards('first of the unused', 'studio-unused');
  await page.getByText('3 of 3 tasks with rollouts').waitFor();
  await page.getByRole('row', { name: /harbour/ }).click();
  await page.getByRole('complementary', { name: 'Task train 0' }).getByRole('link', { name: 'first of the unused' }).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test('a report says who sent it, and which version it is about', { timeout: 150_000 }, async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  const older = `/v1/environments/${palestra.namespace}/studio-older`;
  await addRemote(palestra, 'studio-older', running.url);
  await api('PUT', `${older}/report`, report);
  const open = (name: string) => page.goto(`${palestra.url}/environments/${palestra.namespace}/${name}?tab=report`);
  const outdated = page.getByText('This report is about version 1. The newest version, 2, has none');
  await open('studio-older');
  await page.getByText(`Reported by the owner, ${palestra.namespace},`).waitFor();
  await page.getByText('version 1 · kit 0.1.0').waitFor();
  expect(await outdated.count()).toBe(0);
  await api('POST', `${older}/versions`, { source: { kind: 'remote', url: running.url } });
  await open('studio-older');
  await outdated.waitFor();
  await expectSoundInEveryView(page, 'environment-report-older', { axe: true });
  expect(complaints).toEqual([]);
  await close();
});

test('every page of an environment is sound in every view', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  const base = `/environments/${palestra.namespace}/studio`;
  const pages: [name: string, path: string, text: string][] = [
    ['environments', '/environments', 'studio'],
    ['environment-card', '/environments/palestra/whodunit', 'interview'],
    ['environment-tasks', `${base}?tab=tasks&task=0`, 'harbour'],
    ['environment-tools', `${base}?tab=tools`, 'Of the picture'],
    ['environment-report', `${base}?tab=report`, 'remembers the painter'],
    ['environment-runs', `${base}?tab=runs`, 'difficulty'],
    ['environment-sessions', `${base}?tab=sessions`, 'version 1'],
    ['environment-versions', `${base}?tab=versions`, 'remote'],
    ['playground-setup', `${base}/play?task=1`, 'orchard'],
  ];
  for (const [name, path, text] of pages) {
    await visit(page, palestra.url + path, name === 'environment-versions' ? running.url : text);
    await expectSoundInEveryView(page, name, { axe: true });
  }
  expect(complaints).toEqual([]);
  await close();
}, 300_000);
