import type { Browser, Page } from 'playwright-core';
import { formatReward } from '@palestra/kit/reward-text';
import { beforeAll, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { expectSound, expectSoundInEveryView, launch, openPage, shoot, soon, type View, visit } from './browser.ts';
import { type UploadedMessage, uploadRollout } from './upload.ts';

let palestra: SharedPalestra;
let browser: Browser;
const runName = 'groups suite / n 64';
const narrow: View = { width: 1280, theme: 'light' };

/** The first `shared` searches are the same in all samples, then each goes its own way. */
function episode(sample: number, shared: number, own: number, reward: number): UploadedMessage[] {
  const messages: UploadedMessage[] = [{ type: 'user_message', content: 'Find who did it.' }];
  const act = (name: string, args: object, more: Partial<UploadedMessage> = {}) => {
    const callId = `c${messages.length}`;
    messages.push({ type: 'tool_call', name, callId, content: JSON.stringify(args) });
    messages.push({ type: 'tool_result', callId, content: `seen ${JSON.stringify(args)}`, ...more });
  };
  for (let i = 0; i < shared; i += 1) act('search', { place: i });
  for (let i = 0; i < own; i += 1) act('interview', { sample, question: i });
  act('accuse', { suspect: reward > 0 ? 'Everett Moss' : `suspect ${sample}` }, { reward, isFinished: true });
  return messages;
}

/** Vector 7 of docs/reference/metrics.md#test-vectors: n = 64, c = 5. */
const large = Array.from({ length: 64 }, (_, sample) => (sample % 13 === 3 ? 1 : 0));
const small = [1, 1, 0.04, 0];
/** Advantage of each: (r − mean) / (std + 1e-6), ddof 1, recomputed from what was uploaded. */
function recompute(rewards: readonly number[]) {
  const mean = rewards.reduce((a, b) => a + b, 0) / rewards.length;
  const std = Math.sqrt(rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / (rewards.length - 1));
  return { mean, std, advantages: rewards.map((reward) => (reward - mean) / (std + 1e-6)) };
}

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  for (let at = 0; at < large.length; at += 8) {
    const batch = large.slice(at, at + 8).map((reward, i) => {
      const sample = at + i;
      return uploadRollout(palestra, { runName, task: 7, step: 3, sample, n: 64, messages: episode(sample, 2, sample % 4, reward) });
    });
    await Promise.all(batch);
  }
  for (const [sample, reward] of small.entries())
    await uploadRollout(palestra, {
      runName,
      task: 1,
      step: 3,
      sample,
      n: 4,
      messages: episode(sample, 2, reward === 1 ? 0 : sample, reward),
    });
  for (const sample of [0, 1, 2])
    await uploadRollout(palestra, { runName, task: 1, step: 4, sample, n: 4, messages: episode(sample, 3, 0, 1) });
  // The groups are there as soon as somebody reads them.
}, 180_000);

const groupsPath = (search = '') => `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(runName)}/groups${search}`;
async function keyOf(task: number, step: number): Promise<string> {
  const headers = { 'x-api-key': palestra.apiKey };
  const answer = await fetch(`${palestra.url}/v1/runs/${encodeURIComponent(runName)}/groups`, { headers });
  const { groups } = (await answer.json()) as { groups: { key: string; step: number; task: { index: number } }[] };
  return groups.find((group) => group.task.index === task && group.step === step)!.key;
}
const figures = (page: Page) => page.locator('[data-figures] [title]').evaluateAll((all) => all.map((one) => one.textContent));
const openBoard = async (page: Page, task: number, step: number, search = '') =>
  visit(page, `${groupsPath(`/${await keyOf(task, step)}`)}?at=${step}${search}`, 'first divergence');

test('groups: figures, order, kinds, and Enter opens the board', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, narrow);
  await visit(page, groupsPath(), 'train 7');
  const rows = page.getByRole('table', { name: 'Groups' }).locator('[data-row]');
  await expect.poll(() => rows.count()).toBe(3);
  const text = async () => (await rows.allInnerTexts()).map((row) => row.replaceAll(/\s+/g, ' '));
  await soon(async () => {
    const wide = (await text()).find((row) => row.includes('train 7'))!;
    expect(wide).toContain('64 of 64 .0781 .270 .0781 1.00');
    expect((await text()).find((row) => row.startsWith('4 '))).toContain('▲ 3 of 4 1.00 0 1.00 1.00');
  });
  await page.getByRole('button', { name: 'Mean' }).click();
  await page.waitForURL(/sort=mean\.desc/);
  await expect.poll(async () => (await text())[0]).toContain('1.00');
  await page.getByRole('button', { name: 'Nonzero variance' }).click();
  await expect.poll(() => rows.count()).toBe(2);
  await page.getByRole('button', { name: 'Incomplete' }).click();
  await expect.poll(() => rows.count()).toBe(1);
  await expectSound(page);
  await shoot(page, 'groups-1280-light');
  await page.getByRole('button', { name: 'All', exact: true }).click();
  await expect.poll(() => rows.count()).toBe(3);
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/groups\/-?\d+\?/);
  await page.goBack();
  await page.waitForURL(/\/groups\?/);
  expect(complaints).toEqual([]);
  await close();
});

test('a group of 64: a matrix first, figures of vector 7, advantages as recomputed', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, { width: 1920, theme: 'light' });
  await openBoard(page, 7, 3);
  await page.getByText('aligned with sample 3, the best').waitFor();
  const { mean, std, advantages } = recompute(large);
  const exact = await figures(page);
  expect(exact).toContain(`Mean${formatReward(mean)} n 64`);
  expect(exact).toContain(`Std${formatReward(std)} ddof 1`);
  const pass: [k: number, shown: string][] = [
    [2, '.151'],
    [4, '.284'],
    [8, '.499'],
    [16, '.775'],
    [32, '.974'],
  ];
  for (const [k, value] of pass) expect(exact).toContain(`pass@${k}${value}`);
  const columns = page.locator('[role=columnheader] [data-advantage]');
  await expect.poll(() => columns.count()).toBe(64);
  expect(await page.getByRole('table', { name: 'Actions of all samples' }).getAttribute('aria-colcount')).toBe('64');
  const shownAdvantages = await columns.evaluateAll((all) => all.map((one) => Number((one as HTMLElement).dataset['advantage'])));
  expect(shownAdvantages.length).toBe(64);
  shownAdvantages.forEach((advantage, sample) => expect(advantage).toBeCloseTo(advantages[sample]!, 9));
  // Two searches are shared; the third action is where they part.
  expect(await page.locator('[data-divergence]').evaluate((banner) => banner.parentElement!.getAttribute('aria-rowindex'))).toBe('4');
  await expectSound(page);
  await shoot(page, 'group-matrix-1920-light');
  await page.keyboard.press('l');
  await page.waitForURL(/lane=1/);
  await page.getByRole('button', { name: 'Lanes' }).click();
  await page.waitForURL(/view=lanes/);
  await page.getByRole('table', { name: 'Samples side by side' }).waitFor();
  expect(await page.getByRole('columnheader').count()).toBeLessThan(14);
  // As a key that is held on a busy machine, faster than the page is drawn: none of its steps is lost.
  await page.evaluate(() => {
    for (let step = 0; step < 40; step += 1) document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'l', bubbles: true }));
  });
  await page.waitForURL((url) => url.searchParams.get('lane') === '41');
  await page.getByRole('link', { name: '#41', exact: true }).waitFor();
  expect(await page.getByRole('columnheader').count()).toBeLessThan(14);
  expect(complaints).toEqual([]);
  await close();
});

test('four lanes: aligned, parted, pinned; a cell opens its text; keys lead into the rollout and back', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, narrow);
  await openBoard(page, 1, 3);
  const { advantages } = recompute(small);
  await expect.poll(() => page.getByRole('columnheader').count()).toBe(5);
  await page.getByText('aligned with sample 0, the best').waitFor();
  const shown = await page
    .locator('[data-advantage]')
    .evaluateAll((all) => all.map((one) => Number((one as HTMLElement).dataset['advantage'])));
  expect(shown).toHaveLength(4);
  shown.forEach((advantage, sample) => expect(advantage).toBeCloseTo(advantages[sample]!, 9));
  expect(await page.locator('[data-divergence]').innerText()).toBe(
    'First divergence · 2 of 4 samples diverge from the best, 1 of them here',
  );
  await page
    .getByRole('button', { name: /^interview.*, message 5, differs from the best sample$/ })
    .last()
    .click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('{"sample":3,"question":0}', { exact: true }).waitFor();
  await dialog.getByText('this sample').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Pin best and worst' }).click();
  await page.waitForURL(/pin=true/);
  await expect.poll(() => page.getByRole('columnheader').count()).toBe(3);
  await shoot(page, 'group-pinned-1280-light');
  await page.reload();
  await expect.poll(() => page.getByRole('columnheader').count()).toBe(3);
  // Keys that come before the sample is drawn that the key before them chose.
  await page.evaluate(() => {
    for (const key of ['l', 'Enter']) document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  });
  await page.waitForURL(/\/rollout\//);
  await page.getByRole('feed').getByText('suspect 3', { exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await page.waitForURL(/groups\/.*pin=true/);
  await page.getByText('first divergence').waitFor();
  await page.keyboard.press('}');
  await page.waitForURL(/at=4/);
  await page.getByText('zero variance: all solved').waitFor();
  await page.getByText('1 not received').waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test('the key for another step works while the steps of the task load', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, narrow);
  let load = () => {};
  const held = new Promise<void>((resolve) => (load = resolve));
  await page.route(/\/v1\/runs\/[^/]+\/tasks\//, async (route) => {
    await held;
    await route.continue();
  });
  await openBoard(page, 1, 3);
  await page.keyboard.press('}');
  load();
  await page.waitForURL(/at=4/);
  await page.getByText('zero variance: all solved').waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test('groups, lanes and matrix are sound in every view', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, narrow);
  await visit(page, groupsPath(), 'train 7');
  await expectSoundInEveryView(page, 'groups');
  await openBoard(page, 1, 3);
  await expectSoundInEveryView(page, 'group-lanes');
  await openBoard(page, 7, 3);
  await expectSoundInEveryView(page, 'group-matrix');
  expect(complaints).toEqual([]);
  await close();
});
