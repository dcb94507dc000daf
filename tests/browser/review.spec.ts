import type { NewReviewQueue, ReviewQueueDetail } from '@palestra/protocol';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { sendEvents } from '../support/fixtures/events.mjs';
import { SMALL_RUN, smallRun } from '../support/fixtures/rollouts.mjs';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import {
  axeFaults,
  expectSound,
  inEveryView,
  launch,
  loaded,
  openPage,
  pressShortcut,
  shoot,
  type View,
  visit,
  type Watched,
} from './browser.ts';

/** Review queues without a pointer: from the explorer to the results. */
let palestra: SharedPalestra;
let browser: Browser;
let watched: Watched;
const light: View = { width: 1280, theme: 'light' };

const ask = async <T>(method: string, path: string, body?: object): Promise<T> => {
  const headers = { 'x-api-key': palestra.apiKey, ...(body && { 'content-type': 'application/json' }) };
  const answer = await fetch(palestra.url + path, { method, headers, body: body ? JSON.stringify(body) : null });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
};
const create = (queue: NewReviewQueue) => ask<ReviewQueueDetail>('POST', '/v1/review-queues', { run: SMALL_RUN, ...queue });
const read = (id: string) => ask<ReviewQueueDetail>('GET', `/v1/review-queues/${id}`);

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await sendEvents(
    palestra,
    smallRun().flatMap(({ events }) => events),
  );
});
beforeEach(async () => {
  watched = await openPage(browser, palestra, light);
  return async () => {
    await watched.close();
    if (watched.complaints.length > 0) throw new Error(`The page complained:\n${watched.complaints.join('\n')}`);
  };
});

/** Presses Tab until the element has the focus. */
async function tabTo(page: Page, role: 'link' | 'button' | 'textbox', name: string): Promise<void> {
  const target = page.getByRole(role, { name, exact: true }).first();
  await target.waitFor();
  for (let i = 0; i < 80; i += 1) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`${name} is not reached by Tab`);
}
const atItem = (page: Page, position: number, of: number) => page.getByText(`Item ${position} of ${of}`, { exact: true }).waitFor();

test.each([1280, 390])('at %d px, fifty rollouts are reviewed with the keyboard only, from the query to the results', async (width) => {
  const { page } = watched;
  const atWidth = () => page.setViewportSize({ width, height: 844 });
  await atWidth();
  await visit(page, `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(SMALL_RUN)}/rollouts`, 'of 160 rollouts');
  await tabTo(page, 'button', 'Review');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Control+a');
  await page.keyboard.type(`by keyboard at ${width}`);
  await tabTo(page, 'textbox', 'Criteria, in Markdown (optional)');
  await page.keyboard.type('**good**: names the culprit\n\n**bad**: does not');
  await tabTo(page, 'button', 'Create queue');
  await page.keyboard.press('Enter');
  await tabTo(page, 'link', 'Start review');
  const id = new URL(page.url()).searchParams.get('queue')!;
  await page.keyboard.press('Enter');

  await atItem(page, 1, 50);
  await page.getByRole('complementary', { name: 'Rubric' }).getByText('names the culprit').waitFor();
  await loaded(page);
  expect(await axeFaults(page)).toEqual([]);
  // The first with a comment, which the label sends along.
  await pressShortcut(page, '1');
  await atItem(page, 2, 50);
  await page.keyboard.press('u');
  await atItem(page, 1, 50);
  await page.locator('button[aria-pressed=true]', { hasText: 'good' }).waitFor();
  await page.keyboard.press('c');
  await page.keyboard.type('it guessed 2');
  await page.keyboard.press('Escape');
  await page.keyboard.press('2');
  await atItem(page, 2, 50);
  await page.keyboard.press('n');
  for (let position = 3; position <= 50; position += 1) {
    await atItem(page, position, 50);
    await page.keyboard.press(String((position % 3) + 1));
  }
  await page.getByRole('heading', { name: 'You have no items left' }).waitFor();
  await page.getByText('49 of 50 items are complete. You answered 49 and skipped 1.').waitFor();
  await loaded(page);
  await expectSound(page);
  expect(await axeFaults(page)).toEqual([]);
  // The first action has the focus.
  await page.keyboard.press('Enter');
  await atItem(page, 2, 50);
  await page.keyboard.press('3');
  await page.getByRole('heading', { name: 'Review complete' }).waitFor();
  await inEveryView(page, async (_view, name) => {
    await shoot(page, `review-end-${name}`);
  });
  await atWidth();
  await page.getByRole('link', { name: 'Show results' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('complementary', { name: 'Selected queue' }).getByText('50 of 50 items complete').waitFor();
  expect(await read(id)).toMatchObject({ complete: 50, answers: 50, query: '' });
  const found = await ask<{ total: number }>(
    'GET',
    `/v1/runs/${encodeURIComponent(SMALL_RUN)}/rollouts?q=${encodeURIComponent('note:"it guessed 2" verdict:bad')}`,
  );
  expect(found.total).toBe(1);
  await inEveryView(page, async (_view, name) => {
    await expectSound(page);
    await shoot(page, `review-queues-${name}`);
  });
  expect(await axeFaults(page)).toEqual([]);
});

test('pairs are compared with the arrow keys', async () => {
  const { page } = watched;
  const queue = await create({ name: 'in pairs', mode: 'pairs', sample: 4, criteria: 'Prefer the shorter way to the culprit.' });
  await visit(page, `${palestra.url}/reviews/${queue.id}`, 'Item 1 of 4');
  await page.getByRole('region', { name: 'Left rollout' }).getByRole('feed').waitFor();
  await page.getByRole('region', { name: 'Right rollout' }).getByRole('feed').waitFor();
  await inEveryView(page, async (_view, name) => {
    await expectSound(page);
    await shoot(page, `review-pair-${name}`);
  });
  expect(await axeFaults(page)).toEqual([]);
  for (const [at, key] of ['ArrowLeft', 'ArrowRight', '=', 'ArrowLeft'].entries()) {
    await atItem(page, at + 1, 4);
    await page.keyboard.press(key);
  }
  await page.getByRole('heading', { name: 'Review complete' }).waitFor();
  expect((await read(queue.id)).choices).toEqual({ a: 2, b: 1, tie: 1 });
});

test('agreement that does not exist is – with its reason', async () => {
  const { page } = watched;
  const queue = await create({ name: 'alone so far', sample: 2, overlap: 2 });
  for (const position of [1, 2]) {
    await ask('POST', `/v1/review-queues/${queue.id}/next`, {});
    await ask('PUT', `/v1/review-queues/${queue.id}/items/${position}`, { choice: 'good' });
  }
  await visit(page, `${palestra.url}/reviews?queue=${queue.id}`, '0 of 2 items complete');
  await page.getByText('Agreement α – · no item has the answers of two reviewers').waitFor();
  const cell = page.getByRole('row').filter({ hasText: 'alone so far' }).getByTitle('no item has the answers of two reviewers');
  expect(await cell.innerText()).toBe('–');
});

test('labels are text, a phone shows them, and a closed queue says so', async () => {
  const { page } = watched;
  const queue = await create({ name: 'soon closed', sample: 3, labels: ['yes <b>bold</b>', 'no'] });
  await visit(page, `${palestra.url}/reviews/${queue.id}`, 'Item 1 of 3');
  // A label is text and never markup.
  await page.getByRole('button', { name: 'yes <b>bold</b>' }).waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  await loaded(page);
  await expectSound(page);
  await shoot(page, 'review-item-390-light');
  await ask('POST', `/v1/review-queues/${queue.id}/close`);
  await page.keyboard.press('1');
  await page.getByText('This review queue is closed').first().waitFor();
  watched.complaints.length = 0;
});

test('a queue is closed and deleted, and its results are exported', async () => {
  const { page } = watched;
  const queue = await create({ name: 'to export', sample: 2 });
  await ask('POST', `/v1/review-queues/${queue.id}/next`, {});
  await ask('PUT', `/v1/review-queues/${queue.id}/items/1`, { choice: 'good' });
  await visit(page, `${palestra.url}/reviews?queue=${queue.id}`, '1 of 2 items complete');
  await page.getByRole('button', { name: 'Results: Export' }).click();
  await page.getByRole('menuitem', { name: 'Labels as JSON lines' }).click();
  await page.getByRole('complementary', { name: 'Selected export' }).getByText('Labels of a review').first().waitFor();
  await visit(page, `${palestra.url}/reviews?queue=${queue.id}`, '1 of 2 items complete');
  await page.getByRole('button', { name: 'Close', exact: true }).click();
  await page.getByRole('button', { name: 'Close queue' }).click();
  await page.getByRole('complementary', { name: 'Selected queue' }).getByText('· closed').waitFor();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('button', { name: 'Delete queue' }).click();
  await page.getByRole('complementary', { name: 'Selected queue' }).waitFor({ state: 'detached' });
  const { queues } = await ask<{ queues: { id: string }[] }>('GET', '/v1/review-queues');
  expect(queues.map(({ id }) => id)).not.toContain(queue.id);
});
