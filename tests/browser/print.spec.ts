import type { Browser } from 'playwright-core';
import { beforeAll, expect, test, vi } from 'vitest';
import { randomOf, rolloutEvents, sendEvents } from '../support/fixtures/events.mjs';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { launch, openPage, visit } from './browser.ts';

/** Ctrl+P prints all messages of a rollout, not only those in the window. */
let palestra: SharedPalestra;
let browser: Browser;
const MESSAGES = 180;
const random = randomOf(79);
const long = rolloutEvents(random, {
  runName: 'on paper',
  messages: Array.from({ length: MESSAGES }, (_, i) => ({ type: 'user_message', content: `line ${i} of the rollout` })),
});
vi.setConfig({ testTimeout: 240_000 });

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await sendEvents(palestra, long.events);
});

test.each(['Ctrl+P', 'the menu'])('%s prints every message and returns to the position of the reader', async (way) => {
  const { page, complaints, close } = await openPage(browser, palestra, { width: 1280, theme: 'light' });
  // Headless Chromium has no print dialog: record the text of the page when it would open.
  await page.addInitScript(() => {
    window.print = () => {
      (globalThis as never as { printed: string }).printed = document.body.innerText;
      dispatchEvent(new Event('afterprint'));
    };
  });
  await visit(page, `${palestra.url}/rollout/${long.id}#m-3`, 'line 3 of the rollout');
  expect(await page.locator('article').count()).toBeLessThan(MESSAGES);
  if (way === 'Ctrl+P') await page.keyboard.press('Control+p');
  else {
    await page.getByRole('button', { name: 'More ▾' }).click();
    await page.getByRole('menuitem', { name: 'Print the whole rollout' }).click();
  }
  const printed = () => page.evaluate(() => (globalThis as never as { printed?: string }).printed ?? '');
  await expect.poll(printed, { timeout: 60_000 }).toContain(`line ${MESSAGES - 1} of the rollout`);
  const text = await printed();
  for (let i = 0; i < MESSAGES; i += 1) expect(text).toContain(`line ${i} of the rollout`);
  await page.waitForURL((url) => !url.searchParams.has('print') && url.hash === '#m-3');
  await page.getByText('line 3 of the rollout').first().waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test('the print command of the browser prints the visible rows and a hint how to print all', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, { width: 1280, theme: 'light' });
  await visit(page, `${palestra.url}/rollout/${long.id}`, 'of the rollout');
  const hint = page.getByText('This print contains only the visible rows');
  expect(await hint.isVisible()).toBe(false);
  await page.emulateMedia({ media: 'print' });
  await hint.waitFor();
  await page.goto(`${palestra.url}/rollout/${long.id}?print`);
  await page.getByText(`line ${MESSAGES - 1} of the rollout`).waitFor();
  expect(await hint.count()).toBe(0);
  expect(complaints).toEqual([]);
  await close();
});
