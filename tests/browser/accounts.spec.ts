import type { Browser } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { signIn } from '../support/organisation.ts';
import { axeFaults, expectSoundInEveryView, launch, openPage, shoot, type View, visit } from './browser.ts';

/** Signed-in browsers, the expiry of keys, and the audit log, as owners use them. */

let palestra: SharedPalestra;
let browser: Browser;
const light: View = { width: 1280, theme: 'light' };

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
});

const post = async (path: string, body: object) => {
  const headers = { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' };
  return (await fetch(palestra.url + path, { method: 'POST', headers, body: JSON.stringify(body) })).json() as Promise<any>;
};

test('the list shows the expiry of a new key', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/keys`, 'Create key');
  await page.getByLabel('Key name').fill('short-lived');
  await page.getByLabel('Expires after').selectOption('30');
  await page.getByRole('button', { name: 'Create key' }).click();
  const row = page.getByRole('row', { name: /short-lived/ });
  await row.waitFor();
  const end = await row.locator('time[datetime]').last().getAttribute('datetime');
  expect(Math.round((Date.parse(end!) - Date.now()) / 86_400_000)).toBe(30);
  await shoot(page, 'keys-expiry-1280-light');
  expect(await axeFaults(page)).toEqual([]);
  expect(complaints).toEqual([]);
  await close();
});

test('an owner signs out the browser of a member; the audit log has the event', async () => {
  const name = `Grace ${crypto.randomUUID().slice(0, 8)}`;
  const { sign_in_url: link } = await post('/v1/members', { name });
  const cookie = await signIn(link);
  const statusOf = async () => (await fetch(`${palestra.url}/v1/me`, { headers: { cookie } })).status;
  expect(await statusOf()).toBe(200);

  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/settings?tab=browsers`, name);
  await expectSoundInEveryView(page, 'settings-browsers');
  await page.getByRole('button', { name: new RegExp(`^Sign out .* of ${name}$`) }).click();
  const dialog = page.getByRole('dialog', { name: 'Sign out this browser?' });
  expect(await dialog.innerText()).toContain(name);
  await dialog.getByRole('button', { name: 'Sign out now' }).click();
  await page.getByRole('row', { name }).waitFor({ state: 'detached' });
  expect(await statusOf()).toBe(401);

  await page.getByRole('link', { name: 'Audit log' }).click();
  await page
    .getByRole('row', { name: /Signed a browser out/ })
    .first()
    .waitFor();
  await page.getByRole('combobox', { name: 'Event' }).selectOption('member');
  const added = page.getByRole('row', { name: /Added a member/ }).filter({ hasText: name });
  await added.waitFor();
  expect(await page.getByRole('row', { name: /Signed a browser out/ }).count()).toBe(0);
  const download = await page.getByRole('link', { name: 'Download as JSON lines' }).getAttribute('href');
  expect(download).toBe('/v1/audit/export?action=member');
  await page.getByRole('combobox', { name: 'Event' }).selectOption('');
  await page
    .getByRole('row', { name: /Signed in/ })
    .first()
    .waitFor();
  await expectSoundInEveryView(page, 'settings-audit');
  expect(complaints).toEqual([]);
  await close();
});
