import type { Browser } from 'playwright-core';
import { beforeAll, expect, test, vi } from 'vitest';
import { randomOf, rolloutEvents, sendEvents } from '../support/fixtures/events.mjs';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { launch, loaded, openPage, type View, visit } from './browser.ts';

/** Lists that a reader reads while rollouts come: nothing moves, and a pill says what is new. */
let palestra: SharedPalestra;
let browser: Browser;
const light: View = { width: 1280, theme: 'light' };
const random = randomOf(78);
/** News are here within this time, ms. */
const SOON = 40_000;
vi.setConfig({ testTimeout: 240_000 });

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
});

const LISTED = 'the run that is listed';
/** One more sample of task 0 at step 1. */
const sample = (index: number, reward: number) =>
  rolloutEvents(random, {
    runName: LISTED,
    rolloutName: `sample ${index}`,
    rollout_info: { task_index: 0, current_step: 1 },
    task_spec: { case: 0 },
    metadata: { sample_idx: index },
    messages: [{ type: 'assistant_message', content: `sample ${index}`, reward, isFinished: true }],
  });
const another = (task: number) =>
  rolloutEvents(random, {
    runName: LISTED,
    rolloutName: `task ${task}`,
    rollout_info: { task_index: task, current_step: 1 },
    task_spec: { case: task },
    messages: [{ type: 'assistant_message', content: `task ${task}`, reward: 0, isFinished: true }],
  });

const scored = (runName: string) =>
  rolloutEvents(random, { runName, messages: [{ type: 'assistant_message', content: 'done', reward: 1, isFinished: true }] });

test.each([
  { list: 'groups', table: 'Groups' },
  { list: 'tasks', table: 'Tasks of the run' },
])('rows of $list stay as they were read; a pill tells what came, and what changed', async ({ list, table }) => {
  const first = { groups: 1, tasks: 11 }[list as 'groups' | 'tasks'];
  await sendEvents(palestra, [...sample(first, 1).events, ...another(first + 1).events]);
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(LISTED)}/${list}`, LISTED);
  const rows = page.getByRole('table', { name: table }).locator('[data-row]');
  await rows.first().waitFor();
  const read = await rows.allInnerTexts();
  // What was under way when the list was read is told, too: begin with all of it.
  await sendEvents(palestra, [...another(first + 2).events, ...another(first + 3).events]);
  const pill = page.getByRole('button', { name: /^\d+ new$/ });
  await pill.waitFor({ timeout: SOON });
  await expect.poll(() => pill.innerText(), { timeout: SOON }).toBe('2 new');
  expect(await rows.allInnerTexts()).toEqual(read);
  await pill.click();
  await expect.poll(() => rows.count()).toBe(read.length + 2);
  await pill.waitFor({ state: 'detached' });
  const before = await rows.allInnerTexts();
  await sendEvents(palestra, sample(first + 5, 0).events);
  const changed = page.getByRole('button', { name: 'figures changed: refresh' });
  await changed.waitFor({ timeout: SOON });
  await loaded(page);
  expect(await rows.allInnerTexts()).toEqual(before);
  // Coming back to the window is no wish to see something else.
  await page.evaluate(() => {
    dispatchEvent(new Event('focus'));
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await loaded(page);
  expect(await rows.allInnerTexts()).toEqual(before);
  await changed.click();
  await expect.poll(() => rows.allInnerTexts()).not.toEqual(before);
  await changed.waitFor({ state: 'detached' });
  expect(await rows.count()).toBe(read.length + 2);
  expect(complaints).toEqual([]);
  await close();
});

test('kinds of failure stay as they were read; a pill tells of one that came', async () => {
  const failed = (error: string) =>
    rolloutEvents(random, {
      runName: 'the run that fails',
      rollout_info: { task_index: 0, current_step: 1 },
      messages: [
        { type: 'tool_call', name: 'look', callId: 'a', content: '{}' },
        { type: 'tool_result', callId: 'a', content: error, metadata: { is_error: true } },
      ],
    });
  await sendEvents(palestra, failed('ValueError: nobody of that name').events);
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent('the run that fails')}/failures`, 'ValueError');
  const kinds = page.getByRole('list', { name: 'Kinds of failure' }).locator('[data-row]');
  await expect.poll(() => kinds.count()).toBe(1);
  await sendEvents(palestra, failed('KeyError: the orangery has no door').events);
  const pill = page.getByRole('button', { name: '1 new', exact: true });
  await pill.waitFor({ timeout: SOON });
  expect(await kinds.count()).toBe(1);
  await pill.click();
  await expect.poll(() => kinds.count()).toBe(2);
  await pill.waitFor({ state: 'detached' });
  expect(complaints).toEqual([]);
  await close();
});

test('a list without a row fills by itself', async () => {
  const run = 'the run that was empty';
  await sendEvents(
    palestra,
    rolloutEvents(random, { runName: run, messages: [{ type: 'assistant_message', content: 'no task', reward: 1 }] }).events,
  );
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(
    page,
    `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(run)}/groups?q=reward:0`,
    'No group has a rollout that matches',
  );
  await sendEvents(
    palestra,
    rolloutEvents(random, {
      runName: run,
      rollout_info: { task_index: 3, current_step: 1 },
      messages: [{ type: 'assistant_message', content: 'a task', reward: 0, isFinished: true }],
    }).events,
  );
  await page.getByRole('table', { name: 'Groups' }).locator('[data-row]').first().waitFor({ timeout: SOON });
  expect(complaints).toEqual([]);
  await close();
});

test('the list of runs keeps its order while figures follow; a pill tells of new runs', async () => {
  const first = ['the older run', 'the newer run'] as const;
  for (const runName of first) await sendEvents(palestra, scored(runName).events);
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/${palestra.namespace}/runs`, first[1]);
  const table = page.getByRole('table', { name: 'Runs, newest first' });
  const names = async () => {
    const all = await table.locator('[data-row] a.strong').allInnerTexts();
    return all.filter((name) => name.startsWith('the older run') || name.startsWith('the newer run') || name.startsWith('the newest run'));
  };
  await expect.poll(async () => (await names()).length).toBe(2);
  const read = await names();
  const older = table.locator('[data-row]', { hasText: read[1] });
  const column = (await table.locator('[role=columnheader]').allInnerTexts()).indexOf('Rollouts');
  const rollouts = () => older.locator('[role=cell]').nth(column).innerText();
  await expect.poll(rollouts).toBe('1');
  await sendEvents(palestra, [...scored(read[1]!).events, ...scored(read[1]!).events]);
  await expect.poll(rollouts, { timeout: SOON }).toBe('3');
  expect(await names()).toEqual(read);
  await sendEvents(palestra, scored('the newest run').events);
  const pill = page.getByRole('button', { name: '1 new', exact: true });
  await pill.waitFor({ timeout: SOON });
  expect(await names()).toEqual(read);
  await pill.click();
  await expect.poll(async () => (await names()).toSorted()).toEqual([...read, 'the newest run'].toSorted());
  await pill.waitFor({ state: 'detached' });
  expect(complaints).toEqual([]);
  await close();
});
