import { randomUUID } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, expect, test, vi } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { expectSoundInEveryView, launch, openPage, shoot, soon, type View, visit } from './browser.ts';
import { messageEvents, type UploadedMessage, uploadEvents } from './upload.ts';

/** Selection, its actions and tasks that rotate; walks count the actions of the reader. */
const RUN = 'chosen rollouts';
const STEPS = 20;
const SAMPLES = 4;
const light: View = { width: 1280, theme: 'light' };
const PROMPT = '**Who** took the lamp from the *library*?';

interface Sent {
  id: string;
  step: number;
  task: number;
  sample: number;
  /** null: its session was lost. */
  reward: number | null;
}

/** 25 tasks, five per step: each has four visits. Task 0 is solved from step 10 on. */
const sent: Sent[] = Array.from({ length: STEPS * 5 * SAMPLES }, (_, n) => {
  const [step, sample] = [Math.floor(n / (5 * SAMPLES)), n % SAMPLES];
  const task = (step % 5) * 5 + (Math.floor(n / SAMPLES) % 5);
  const reward = (step + sample) % 11 === 0 ? null : task === 0 ? Number(step >= 10) : [0, 0.25, 0.5, 1][sample]!;
  return { id: randomUUID(), step, task, sample, reward };
});

function eventsOf({ id, step, task, sample, reward }: Sent): object[] {
  const messages: UploadedMessage[] = [
    { type: 'user_message', content: PROMPT },
    { type: 'tool_call', name: 'search', callId: 'a', content: `{"room":"room ${sample}"}` },
    { type: 'tool_result', callId: 'a', content: `Dust in room ${sample}.` },
    { type: 'tool_call', name: 'accuse', callId: 'b', content: '{"suspect":"Moss"}' },
    { type: 'tool_result', callId: 'b', content: 'Noted.', ...(reward !== null && { reward, isFinished: true }) },
  ];
  const metadata = { sample_idx: sample, n_samples: SAMPLES, stop_reason: reward === null ? 'infra_error' : 'finished' };
  const start = {
    eventType: 'rollout',
    eventId: id,
    timestamp: 1,
    runName: RUN,
    rolloutName: `r${task}`,
    environment: 'palestra/whodunit',
  };
  return [
    { ...start, split: 'train', rollout_info: { task_index: task, current_step: step }, metadata, task_spec: { case: task } },
    ...messageEvents(id, messages),
  ];
}

let palestra: SharedPalestra;
let browser: Browser;
const ofRun = (rest = '') => `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(RUN)}${rest}`;
const get = async (path: string): Promise<any> => {
  const answer = await fetch(`${palestra.url}/v1${path}`, { headers: { 'x-api-key': palestra.apiKey } });
  return answer.json();
};
const total = async (q: string): Promise<number> =>
  (await get(`/runs/${encodeURIComponent(RUN)}/rollouts?limit=1&q=${encodeURIComponent(q)}`)).total;

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  for (let at = 0; at < sent.length; at += 100) await uploadEvents(palestra, sent.slice(at, at + 100).flatMap(eventsOf));
  await vi.waitUntil(async () => (await total('')) === sent.length, { timeout: 60_000, interval: 200 });
}, 120_000);

const bar = (page: Page) => page.getByRole('region', { name: 'Selection' });
const marks = (page: Page) => page.locator('[data-row][data-chosen]');

/** Counts clicks and keys of a walk. */
function counted(page: Page) {
  let actions = 0;
  const count = async (work: () => Promise<void>) => {
    actions += 1;
    await work();
  };
  return {
    click: (name: string | RegExp, role: 'button' | 'link' | 'menuitem' = 'button') =>
      count(() =>
        page
          .getByRole(role, { name, exact: typeof name === 'string' })
          .first()
          .click(),
      ),
    enter: (label: string, text: string) =>
      count(async () => {
        await page.getByRole('combobox', { name: label }).fill(text);
        await page.getByRole('combobox', { name: label }).press('Enter');
      }),
    actions: () => actions,
  };
}

test('rows are chosen by keyboard alone, tagged, and the selection is cleared', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, ofRun('/rollouts?q=step%3A3&sort=reward'), 'of 400 rollouts');
  await page.locator('[data-row]').first().waitFor();
  for (const key of ['j', 'x', 'j', 'j', 'X']) await page.keyboard.press(key);
  await bar(page).getByText('3 selected').waitFor();
  expect(await marks(page).count()).toBe(3);
  await page.keyboard.press('x');
  await bar(page).getByText('2 selected').waitFor();
  await page.keyboard.press('Escape');
  await bar(page).waitFor({ state: 'detached' });
  // Two rows again, tagged without the mouse.
  for (const key of ['x', 'k', 'x']) await page.keyboard.press(key);
  await bar(page).getByText('2 selected').waitFor();
  await bar(page).getByRole('button', { name: 'Tag the selection' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('textbox', { name: 'Tag' }).focus();
  await page.keyboard.type('by keyboard');
  await page.keyboard.press('Enter');
  await bar(page).getByText('✓ 2 rollouts tagged “by keyboard”').waitFor();
  expect(await total('tag:"by keyboard"')).toBe(2);
  expect(complaints).toEqual([]);
  await close();
});

test('everything that matches a query gets a verdict, also beyond the loaded page', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, ofRun('/rollouts?q=reward%3A1'), 'of 400 rollouts');
  const solved = sent.filter(({ reward }) => reward === 1).length;
  await page.locator('[data-row]').first().getByRole('checkbox').check();
  await bar(page)
    .getByRole('button', { name: `Select all ${solved} that match this query` })
    .click();
  await bar(page).getByText(`All ${solved} selected`).waitFor();
  expect(await bar(page).getByRole('button', { name: 'Compare' }).getAttribute('title')).toMatch(/one by one/);
  await bar(page)
    .getByRole('button', { name: /^Verdict/ })
    .click();
  await page.getByRole('menuitem', { name: 'good' }).click();
  await bar(page).getByText(`✓ ${solved} rollouts marked good`).waitFor();
  expect(await total('verdict:good')).toBe(solved);
  // Shift and a click take a range; a click with Shift does not open the rollout.
  await page.keyboard.press('Escape');
  await page.locator('[data-row]').nth(1).getByRole('checkbox').check();
  await page
    .locator('[data-row]')
    .nth(4)
    .click({ modifiers: ['Shift'] });
  await bar(page).getByText('4 selected').waitFor();
  await bar(page).getByRole('link', { name: 'Compare 4' }).click();
  await page.getByRole('table', { name: 'Samples side by side' }).getByText('Moss').first().waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test('export the good ones: at most 4 actions', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, ofRun('/rollouts'), 'of 400 rollouts');
  const { click, enter, actions } = counted(page);
  await enter('Query', 'reward:1');
  await page
    .getByText(/of 400 rollouts/)
    .first()
    .waitFor();
  await click('Export');
  const dialog = page.getByRole('dialog');
  await dialog.getByText(`${sent.filter(({ reward }) => reward === 1).length} rows, one per rollout`).waitFor();
  await dialog.getByRole('button', { name: 'Export', exact: true }).click();
  await dialog.getByText('complete').waitFor({ timeout: 60_000 });
  expect(actions() + 1).toBeLessThanOrEqual(4);
  expect(complaints).toEqual([]);
  await close();
});

test('the two best siblings side by side: at most 3 actions, from a rollout and from the list of groups', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  const group = sent.filter(({ step, task }) => step === 7 && task === 12);
  const [best, second] = group.toSorted((a, b) => (b.reward ?? -1) - (a.reward ?? -1));
  await visit(page, `${palestra.url}/rollout/${group[0]!.id}`, 'search');
  let walk = counted(page);
  await walk.click(/Side by side/);
  await walk.click('Two best samples', 'menuitem');
  await page.waitForURL((url) => url.searchParams.get('rollouts') === `${best!.id},${second!.id}`);
  expect(walk.actions()).toBeLessThanOrEqual(3);
  // The rows show the arguments of both.
  await soon(async () => {
    const shown = (await page.locator('[data-arguments]').allInnerTexts()).join(' ');
    expect(shown).toContain('Moss');
  });
  await expectSoundInEveryView(page, 'compare-siblings');

  await visit(page, ofRun('/groups?steps=7'), 'train 12');
  walk = counted(page);
  await page.locator('[data-row]').filter({ hasText: 'train 12' }).click();
  await walk.click('Compare two best', 'link');
  await page.waitForURL((url) => url.searchParams.get('rollouts') === `${best!.id},${second!.id}`);
  expect(walk.actions() + 1).toBeLessThanOrEqual(3);
  expect(complaints).toEqual([]);
  await close();
});

test('groups and tasks are chosen, and their rollouts get the tag', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, ofRun('/groups?steps=4'), 'train 20');
  await page.locator('[data-row]').first().waitFor();
  for (const key of ['j', 'x', 'j', 'x']) await page.keyboard.press(key);
  await bar(page).getByText('2 groups selected, 8 rollouts').waitFor();
  await expectSoundInEveryView(page, 'groups-selected');
  await visit(page, ofRun('/tasks'), 'train 24');
  await page
    .locator('[data-row]')
    .filter({ hasText: /^train 0\b/ })
    .getByRole('checkbox')
    .check();
  await bar(page).getByText('1 task selected, 16 rollouts').waitFor();
  await bar(page).getByRole('button', { name: 'Tag the selection' }).click();
  await page.getByRole('textbox', { name: 'Tag' }).fill('task zero');
  await page.getByRole('button', { name: 'Tag 16 rollouts' }).click();
  await bar(page).getByText('✓ 16 rollouts tagged “task zero”').waitFor();
  expect(await total('tag:"task zero" task:0')).toBe(16);
  await expectSoundInEveryView(page, 'tasks-selected');
  expect(complaints).toEqual([]);
  await close();
});

test('with rotating tasks every task has a change, between visits that are named', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, ofRun('/tasks'), 'train 24');
  const row = (task: number) => page.locator('[data-row]').filter({ hasText: new RegExp(`^train ${task}\\b`) });
  await soon(async () => expect(await row(0).innerText()).toMatch(/\+ Gained\s+0 → 15/));
  const texts = await page.locator('[data-row]').allInnerTexts();
  expect(texts).toHaveLength(25);
  expect(texts.filter((text) => !/\d+ → \d+/.test(text))).toEqual([]);
  await visit(page, ofRun('/tasks?from=4&to=12'), 'train 24');
  await soon(async () => expect(await row(0).innerText()).toMatch(/\+ Gained\s+5 → 10/));
  expect(complaints).toEqual([]);
  await close();
});

test('a task shows its prompt, its curves, its figures and its rollouts', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, ofRun('/tasks'), 'train 24');
  await page
    .locator('[data-row]')
    .filter({ hasText: /^train 17\b/ })
    .click();
  await page.getByRole('region', { name: 'Text of the prompt' }).locator('strong', { hasText: 'Who' }).waitFor();
  const own = sent.filter(({ task }) => task === 17);
  const rewards = own.flatMap(({ reward }) => reward ?? []);
  const figures = page.locator('[data-figures]');
  await figures.getByText(`of ${own.length} rollouts`).waitFor();
  await figures.getByText(`✕ ${own.length - rewards.length} left out`).waitFor();
  await page.getByRole('button', { name: 'Table of Is it solved more often?' }).click();
  const table = page.getByRole('region', { name: 'Is it solved more often? as a table' });
  for (const step of [3, 8, 13, 18]) {
    const visitRewards = own.filter((one) => one.step === step).flatMap(({ reward }) => reward ?? []);
    await table.getByRole('row', { name: new RegExp(`^${step}\\b.*${visitRewards.length} of 4$`) }).waitFor();
  }
  await expect.poll(() => page.getByRole('table', { name: 'Rollouts of the query' }).locator('[data-row]').count()).toBeGreaterThan(5);
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await bar(page).getByText('1 selected').waitFor();
  await expectSoundInEveryView(page, 'task');
  expect(complaints).toEqual([]);
  await close();
}, 300_000);

test('on a phone the selection and its actions are within reach, and a task begins with its figures', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await page.setViewportSize({ width: 390, height: 844 });
  const isWithin = async (name: string) => {
    await shoot(page, `${name}-390-light`);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  };
  await visit(page, ofRun('/rollouts?q=step%3A3'), 'of 400 rollouts');
  await page.locator('[data-row]').first().getByRole('checkbox').check();
  for (const name of ['Tag the selection', 'Export', 'Share the selection', 'Clear']) {
    const box = await bar(page).getByRole('button', { name, exact: true }).boundingBox();
    expect(box!.x + box!.width).toBeLessThanOrEqual(390);
    expect(box!.y + box!.height).toBeLessThanOrEqual(844);
  }
  await isWithin('selection');
  await visit(page, ofRun('/tasks'), 'train 24');
  await isWithin('tasks');
  await page.locator('[data-row]').first().click();
  const rate = await page.locator('[data-figures]').getByText('solve rate').boundingBox();
  expect(rate!.y).toBeLessThan(400);
  await page.getByRole('region', { name: 'Text of the prompt' }).scrollIntoViewIfNeeded();
  await page.getByText('Who', { exact: true }).waitFor();
  await isWithin('task');
  const [a, b] = sent.filter(({ step, task }) => step === 7 && task === 12);
  await visit(page, `${palestra.url}/compare?rollouts=${a!.id},${b!.id}`, 'Moss');
  await isWithin('compare-two');
  expect(complaints).toEqual([]);
  await close();
});
