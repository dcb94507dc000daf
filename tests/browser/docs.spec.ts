import type { Browser } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { axeFaults, launch, openPage, pressShortcut } from './browser.ts';

/** The documentation site that the service serves at /docs. */
let palestra: SharedPalestra;
let browser: Browser;
beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
});

test.each(['light', 'dark'] as const)('the site in the %s theme is accessible, fits a phone and searches offline', async (theme) => {
  const { page, complaints, close } = await openPage(browser, palestra, { width: 1280, theme });
  for (const address of ['/docs/', '/docs/environments', '/docs/api/sessions']) {
    await page.goto(palestra.url + address);
    await page.locator('h1').waitFor();
    await expect.poll(() => page.evaluate(() => document.documentElement.classList.contains('dark'))).toBe(theme === 'dark');
    expect(await axeFaults(page), address).toEqual([]);
  }

  await page.getByRole('button', { name: 'Search' }).first().click();
  await page.getByRole('searchbox').fill('heartbeat timeout');
  await page.locator('.results .result').first().click();
  await page.waitForURL(/\/docs\/.+/);
  await page.locator('h1').waitFor();

  await page.setViewportSize({ width: 390, height: 844 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  expect(complaints).toEqual([]);
  await close();
});

test('the dashboard leads to the site, and a missing page says so', async () => {
  const { page, close } = await openPage(browser, palestra, { width: 1280, theme: 'light' });
  await page.goto(`${palestra.url}/sessions`);
  await page.getByRole('heading', { name: 'Sessions' }).first().waitFor();
  await pressShortcut(page, '?');
  await page.getByRole('dialog').getByRole('link', { name: 'Documentation' }).click();
  await page.getByRole('heading', { level: 1, name: 'Documentation' }).waitFor();

  await page.goto(`${palestra.url}/sessions`);
  await page.getByRole('heading', { name: 'Sessions' }).first().waitFor();
  await pressShortcut(page, 'Control+k');
  await page.keyboard.type('documentation');
  await page.getByRole('option', { name: 'Documentation' }).click();
  await page.getByRole('heading', { level: 1, name: 'Documentation' }).waitFor();

  await page.goto(`${palestra.url}/docs/nope`);
  await expect.poll(() => page.locator('body').innerText()).toMatch(/page not found/i);
  await close();
});
