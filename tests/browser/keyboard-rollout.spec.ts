import type { Browser, Page } from 'playwright-core';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { sendEvents } from '../support/fixtures/events.mjs';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { launch, loaded, openPage, pressShortcut, pressTwice, type View, visit, type Watched } from './browser.ts';
import { best, KEY_RUN, keyRun, later, middle, worst } from './keyboard.data.ts';

/** The commands of frame/keymap.ts on the page of a rollout. */
let palestra: SharedPalestra;
let browser: Browser;
let watched: Watched;
const light: View = { width: 1280, theme: 'light' };
const words = new Map([
  [worst.id, 'Find who did it, 1-0.'],
  [best.id, 'Find who did it, 1-1.'],
  [middle.id, 'Find who did it, 1-2.'],
  [later.id, 'Find who did it, 2-0.'],
]);

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await sendEvents(
    palestra,
    keyRun.flatMap(({ events }) => events),
  );
});
beforeEach(async () => {
  watched = await openPage(browser, palestra, light);
  return async () => {
    await watched.close();
    if (watched.complaints.length > 0) throw new Error(`The page complained:\n${watched.complaints.join('\n')}`);
  };
});

const runPath = (run: string, rest = '') => `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(run)}${rest}`;
const hash = (page: Page) => new URL(page.url()).hash;
/** Waits for the text of the rollout in the address, because the address changes before the page. */
async function addressed(page: Page): Promise<void> {
  const id = new URL(page.url()).pathname.split('/').at(-1)!;
  await page.getByText(words.get(id)!, { exact: true }).first().waitFor();
}
const openRollout = (page: Page, id: string, rest = '') => visit(page, `${palestra.url}/rollout/${id}${rest}`, 'That was all.');

describe('rollout', () => {
  test('j k J K gg G go from message to message', async () => {
    const { page } = watched;
    await openRollout(page, worst.id);
    for (const [keys, expected] of [
      ['j', '#m-0'],
      ['j', '#m-1'],
      ['j', '#m-2'],
      ['k', '#m-1'],
      ['J', '#m-3'],
      ['J', '#m-5'],
      ['K', '#m-3'],
      ['G', '#m-9'],
      ['gg', '#m-0'],
    ] as const) {
      await (keys === 'gg' ? pressTwice(page, 'g') : page.keyboard.press(keys));
      await expect.poll(() => hash(page), { message: keys }).toBe(expected);
    }
  });

  test('h l [ ] { } n p open other samples, other steps and neighbours in the query', async () => {
    const { page } = watched;
    await openRollout(page, worst.id, '?q=step:1');
    for (const [key, id] of [
      ['l', best.id],
      [']', middle.id],
      ['[', best.id],
      ['h', worst.id],
      ['}', later.id],
      ['{', worst.id],
    ] as const) {
      await page.keyboard.press(key);
      await page.waitForURL((url) => url.pathname === `/rollout/${id}`);
      await addressed(page);
    }
    // Newest first: whatever they are, n and p are each other’s inverse within the query.
    const here = page.url();
    const end = page.getByText('The query has no more rollouts');
    for (const pair of [
      ['n', 'p'],
      ['p', 'n'],
    ] as const) {
      await end.waitFor({ state: 'hidden' });
      await page.keyboard.press(pair[0]);
      await expect.poll(async () => page.url() !== here || (await end.isVisible())).toBe(true);
      if (page.url() === here) continue;
      await addressed(page);
      expect(new URL(page.url()).searchParams.get('q')).toBe('step:1');
      await page.keyboard.press(pair[1]);
      await page.waitForURL(here);
      await addressed(page);
    }
  });

  test('n, p and their buttons follow the query, filter and order of the list', async () => {
    const { page } = watched;
    await visit(page, runPath(KEY_RUN, '/rollouts?steps=1&q=calls:3&sort=-reward'), 'of 4 rollouts');
    const table = page.getByRole('table', { name: 'Rollouts of the query' });
    await table.locator('[data-row]').first().waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    const at = (id: string) => page.waitForURL((url) => url.pathname === `/rollout/${id}`);
    await at(best.id);
    const address = new URL(page.url()).searchParams;
    expect([address.get('q'), address.get('sort')]).toEqual(['step:1 calls:3', '-reward']);
    const list = page.getByRole('group', { name: 'List from which the rollout was opened' });
    await expect.poll(() => list.getByRole('button', { name: 'Previous rollout of the list' }).isDisabled()).toBe(true);
    for (const [key, id] of [
      ['n', middle.id],
      ['n', worst.id],
      ['p', middle.id],
      ['p', best.id],
    ] as const) {
      await addressed(page);
      await page.keyboard.press(key);
      await at(id);
    }
    await addressed(page);
    await list.getByRole('button', { name: 'Next rollout of the list' }).click();
    await at(middle.id);
    await addressed(page);
    await page.keyboard.press('n');
    await at(worst.id);
    await addressed(page);
    await page.keyboard.press('n');
    await page.getByText('The query has no more rollouts').waitFor();
    await page.keyboard.press('Escape');
    await page.waitForURL(/\/rollouts\?/);
  });

  test('d e E r t f mod+f y run their commands', async () => {
    const { page } = watched;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: palestra.url });
    await openRollout(page, worst.id);
    await page.keyboard.press('d');
    await page.waitForURL((url) => url.searchParams.get('diff') === best.id);
    await page.getByRole('complementary', { name: 'Difference' }).waitFor();
    await page.keyboard.press('d');
    await page.getByRole('complementary', { name: 'Difference' }).waitFor({ state: 'detached' });
    await pressTwice(page, 'g');
    await expect.poll(() => hash(page)).toBe('#m-0');
    await page.keyboard.press('e');
    await page.getByRole('button', { name: 'Hide system message' }).waitFor();
    await page.keyboard.press('e');
    await page.getByRole('button', { name: 'Hide system message' }).waitFor({ state: 'detached' });
    await page.keyboard.press('r');
    await page.getByRole('button', { name: 'Hide reasoning' }).waitFor();
    await page.keyboard.press('r');
    await page.getByRole('button', { name: 'Hide reasoning' }).waitFor({ state: 'detached' });
    await page.keyboard.press('E');
    await page.getByRole('button', { name: 'Hide system message' }).waitFor();
    await page.keyboard.press('f');
    await page.getByRole('navigation', { name: 'Outline' }).waitFor({ state: 'detached' });
    await page.keyboard.press('f');
    await page.getByRole('navigation', { name: 'Outline' }).waitFor();
    await page.keyboard.press('Control+f');
    await page.getByRole('textbox', { name: 'Find in this rollout' }).waitFor();
    await page.keyboard.type('nobody');
    await page.getByText(/1 of \d messages/).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('search').waitFor({ state: 'detached' });
    await page.keyboard.press('y');
    await page.getByText('link copied').waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(page.url());
    const scroller = page.getByRole('region', { name: 'Transcript, scrollable' });
    await page.setViewportSize({ width: 1280, height: 420 });
    await page.keyboard.press('t');
    await expect.poll(() => scroller.evaluate((one) => one.scrollHeight - one.scrollTop - one.clientHeight)).toBeLessThan(2);
  });

  test('1 to 5 set a score, g b x set a verdict', async () => {
    const { page } = watched;
    await openRollout(page, middle.id);
    for (const score of ['1', '2', '3', '4', '5']) {
      await page.keyboard.press(score);
      await page.getByText(`score ${score} saved`).waitFor();
    }
    for (const [key, verdict] of [
      ['b', 'bad'],
      ['x', 'exploit'],
      ['g', 'good'],
    ] as const) {
      await page.keyboard.press(key);
      await page.getByText(`verdict ${verdict} saved`).waitFor();
    }
    await page.getByText('good, 5 of 5').waitFor();
    const answer = await page.request.get(`${palestra.url}/v1/annotations?rollout=${middle.id}`);
    const { annotations } = (await answer.json()) as { annotations: { verdict: string | null; score: number | null }[] };
    expect(annotations.map(({ verdict, score }) => verdict ?? score)).toEqual(['good', 'exploit', 'bad', 5, 4, 3, 2, 1]);
  });
});

test('keys have no effect while a dialog is open', async () => {
  const { page } = watched;
  await openRollout(page, best.id, '#m-3');
  await pressShortcut(page, '?');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  for (const key of ['j', 'G', 'x', 'd', ']']) await page.keyboard.press(key);
  await loaded(page);
  expect(new URL(page.url()).pathname + hash(page)).toBe(`/rollout/${best.id}#m-3`);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor({ state: 'hidden' });
  const answer = await page.request.get(`${palestra.url}/v1/annotations?rollout=${best.id}`);
  expect(((await answer.json()) as { annotations: unknown[] }).annotations).toEqual([]);
});
