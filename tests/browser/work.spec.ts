import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { launch, openPage, type View, visit } from './browser.ts';

/** The first steps of a new user: the snippet and API keys. */

let palestra: SharedPalestra;
let browser: Browser;
const light: View = { width: 1280, theme: 'light' };

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
});

test('the snippet of an empty organisation works unchanged, and its run appears without a reload', { timeout: 200_000 }, async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, palestra.url, 'No runs yet');
  const snippet = (await page.locator('pre', { hasText: 'from openreward import' }).innerText()).trim();
  const python = process.env['PALESTRA_PYTHON_V167'];
  if (!python && process.env['CI']) throw new Error('PALESTRA_PYTHON_V167 is not set');
  if (python) {
    const address = { OPENREWARD_URL: palestra.url, OPENREWARD_API_URL: palestra.url, OPENREWARD_SESSION_URL: palestra.url };
    const env = { ...process.env, ...address, OPENREWARD_API_KEY: palestra.apiKey, OPENREWARD_DISABLE_UPDATE_CHECK: '1' };
    await promisify(execFile)(python, ['-c', snippet], { env, timeout: 120_000 });
    await page.locator('[data-row]', { hasText: 'first-run' }).waitFor();
    await expect.poll(() => page.locator('[data-row]', { hasText: 'first-run' }).innerText()).toContain('1.00');
  }
  expect(complaints).toEqual([]);
  await close();
});

test('a new key is shown once, works, and can be revoked', async () => {
  const { page, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/keys`, 'Create key');
  await page.getByLabel('Key name').fill('trainer-2');
  await page.getByRole('button', { name: 'Create key' }).click();
  const key = await page.locator('[role=status] code').innerText();
  const me = () => fetch(`${palestra.url}/v1/me`, { headers: { 'x-api-key': key } });
  expect((await me()).status).toBe(200);
  await page.reload({ waitUntil: 'domcontentloaded' });
  await page.getByText('trainer-2').first().waitFor();
  expect(await page.locator('main').innerText()).not.toContain(key);
  const row = page.locator('[role=row], li, div', { hasText: 'trainer-2' }).last();
  await row
    .locator('xpath=ancestor-or-self::*[.//button[normalize-space()="Revoke"]][1]')
    .getByRole('button', { name: 'Revoke' })
    .first()
    .click();
  await page.getByRole('button', { name: new RegExp(`Revoke ${key.slice(0, 6)}.* now`) }).click();
  await page.getByText('revoked').first().waitFor();
  expect((await me()).status).toBe(401);
  await close();
});
