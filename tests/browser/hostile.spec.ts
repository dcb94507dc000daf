import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { launch, openPage, shoot, visit } from './browser.ts';
import { uploadRun } from './rollouts.data.ts';

let palestra: Palestra;
let browser: Browser;
let id: string;

beforeAll(async () => {
  [palestra, browser] = await Promise.all([startPalestra(), launch()]);
  id = (await uploadRun(palestra)).hostile;
});
afterAll(async () => {
  await browser?.close();
  await palestra?.stop();
});

test('a hostile transcript is inert: text, not elements, and nothing leaves the origin', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, { width: 1280, theme: 'light' });
  await visit(page, `${palestra.url}/rollout/${id}`, 'red alert');
  const feed = page.getByRole('feed');
  expect(await feed.locator('script, img, iframe, form, input, style, b, svg').count()).toBe(0);
  const links = await feed.locator('a').evaluateAll((all) => all.map((link) => link.getAttribute('href')!));
  expect(links.filter((href) => !href.startsWith('#m-'))).toEqual(['https://example.org/', 'https://example.org/']);
  const text = await feed.innerText();
  for (const shown of [
    '<script>window.pwned = 1</script>',
    'https://evil.example/b.png',
    '⟦RLO⟧',
    '⟦ZWSP⟧',
    '__proto__',
    '<b>tag</b>',
    'not a link',
    'is missing',
  ]) {
    expect(text).toContain(shown);
  }
  expect(text).not.toContain('\u202e');
  expect(await feed.locator('.ansi-1').innerText()).toBe('red alert');
  expect(await page.evaluate(() => (window as unknown as { pwned?: number }).pwned)).toBeUndefined();
  await shoot(page, 'hostile-1280-light');
  expect(complaints).toEqual([]);
  await close();
});
