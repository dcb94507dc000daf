import type { Browser } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { axeFaults, expectSound, expectSoundInEveryView, launch, openPage, openStranger, shoot, type View, visit } from './browser.ts';
import { createShare, type UploadedMessage, uploadRollout } from './upload.ts';

/** Keys, members, the organisation and the checker. Tests use the created keys and links over HTTP and in other browsers. */

let palestra: SharedPalestra;
let browser: Browser;
let rollout: string;
const light: View = { width: 1280, theme: 'light' };

const episode: UploadedMessage[] = [
  { type: 'user_message', content: 'Who put out the lamp?' },
  { type: 'assistant_message', content: 'Everett Moss.', reward: 1, isFinished: true },
];

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  rollout = await uploadRollout(palestra, { runName: 'shared-run', task: 3, step: 7, sample: 0, messages: episode });
});

const statusOf = async (path: string, key: string) => (await fetch(palestra.url + path, { headers: { 'x-api-key': key } })).status;

test('a new key has its scopes and is rejected after it is revoked', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/keys`, 'Create key');
  await page.getByLabel('Key name').fill('reader');
  await page.getByLabel('Concurrent sessions').fill('2');
  for (const scope of ['sessions', 'environments']) await page.getByRole('checkbox', { name: new RegExp(`^${scope}`) }).uncheck();
  await page.getByRole('button', { name: 'Create key' }).click();
  const shown = page.getByRole('status').filter({ hasText: 'shown only once' });
  const key = await shown.locator('code').first().innerText();
  const lines = await shown.locator('pre').innerText();
  expect(lines.split('\n')).toEqual([
    `export OPENREWARD_URL=${palestra.url}`,
    `export OPENREWARD_API_URL=${palestra.url}`,
    `export OPENREWARD_SESSION_URL=${palestra.url}`,
    `export OPENREWARD_API_KEY=${key}`,
  ]);
  await shoot(page, 'keys-created-1280-light');
  expect(await axeFaults(page)).toEqual([]);
  expect([await statusOf('/v1/runs', key), await statusOf('/v1/sessions', key), await statusOf('/v1/keys', key)]).toEqual([200, 403, 403]);
  const row = page.getByRole('row', { name: /reader/ });
  await expect
    .poll(async () => (await row.innerText()).split('\n'))
    .toEqual(expect.arrayContaining([`${key.slice(0, 9)}…`, 'rollouts', '2']));
  await row.getByRole('button', { name: 'Revoke reader' }).click();
  const dialog = page.getByRole('dialog', { name: 'Revoke reader?' });
  expect(await dialog.innerText()).toContain(key.slice(0, 9));
  expect(await axeFaults(page)).toEqual([]);
  await dialog.getByRole('button', { name: /^Revoke .* now$/ }).click();
  await row.getByText(/Revoked/).waitFor();
  expect(await statusOf('/v1/runs', key)).toBe(401);
  await page.reload({ waitUntil: 'domcontentloaded' });
  await row.waitFor();
  expect(await page.locator('main').innerText()).not.toContain(key);
  expect(complaints).toEqual([]);
  await close();
});

test('a new member signs in by a link, cannot change settings, and is signed out when removed', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/settings?tab=members`, 'Member name');
  await page.getByLabel('Member name').fill('Ada Finch');
  await page.getByRole('button', { name: 'Add member', exact: true }).click();
  const link = await page.getByRole('status').locator('code').innerText();
  await shoot(page, 'settings-member-added-1280-light');
  expect(await axeFaults(page)).toEqual([]);

  const ada = await openStranger(browser, light);
  await ada.page.goto(link, { waitUntil: 'domcontentloaded' });
  await ada.page.getByRole('button', { name: 'Sign in' }).click();
  await ada.page.getByText('shared-run').first().waitFor();
  expect(ada.refused).toEqual([]);
  await visit(ada.page, `${palestra.url}/settings`, 'Only owners of the organisation can change this');
  expect(await ada.page.getByLabel('Keep rollouts for').getAttribute('readonly')).not.toBeNull();
  expect(await ada.page.getByRole('button', { name: 'Save' }).count()).toBe(0);
  await shoot(ada.page, 'settings-read-only-1280-light');
  await ada.page.getByRole('link', { name: 'Members' }).click();
  await ada.page.getByRole('row', { name: /Ada Finch/ }).waitFor();
  expect(await ada.page.getByRole('button', { name: /^Leave me|^Sign-in link for me/ }).count()).toBe(0);

  const used = await openStranger(browser, light);
  await used.page.goto(link, { waitUntil: 'domcontentloaded' });
  await used.page.getByText('it was used or has expired').waitFor();
  await used.close();

  const row = page.getByRole('row', { name: /Ada Finch/ });
  const promoted = page.waitForResponse((answer) => answer.request().method() === 'PATCH');
  await row.getByLabel('Role of Ada Finch').selectOption('owner');
  expect((await promoted).status()).toBe(200);
  await ada.page.goto(`${palestra.url}/settings`, { waitUntil: 'domcontentloaded' });
  await ada.page.getByRole('button', { name: 'Save' }).waitFor();
  await row.getByRole('button', { name: 'Remove Ada Finch' }).click();
  const dialog = page.getByRole('dialog', { name: 'Remove Ada Finch?' });
  expect(await dialog.innerText()).toContain('the browsers that Ada Finch is signed in with');
  await dialog.getByRole('button', { name: 'Remove Ada Finch now' }).click();
  await row.waitFor({ state: 'detached' });
  await visit(ada.page, `${palestra.url}/settings`, 'Sign in');
  expect(ada.complaints).toEqual([]);
  await ada.close();

  // The last owner cannot go.
  await page.getByRole('button', { name: 'Leave the organisation' }).click();
  await page.getByRole('button', { name: 'Leave now' }).click();
  await page.getByRole('alert').filter({ hasText: /owner/ }).waitFor();
  expect(complaints.filter((text) => !/409/.test(text))).toEqual([]);
  await close();
});

test('settings of the organisation are saved, and a link signs in to a new organisation', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/settings`, 'Keep rollouts for');
  await page.getByLabel('Keep rollouts for').fill('90');
  await page.getByText('will permanently erase').waitFor();
  await page.getByLabel('Concurrent sessions').fill('12');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved.').waitFor();
  const organisation = await fetch(`${palestra.url}/v1/organisation`, { headers: { 'x-api-key': palestra.apiKey } });
  expect(await organisation.json()).toMatchObject({ retention_days: 90, max_sessions: 12 });
  await page.getByLabel(/^Name: lower-case/).fill('vision-team');
  await page.getByRole('button', { name: 'Create organisation' }).click();
  const link = await page.getByRole('status').locator('code').innerText();
  const other = await openStranger(browser, light);
  await other.page.goto(link, { waitUntil: 'domcontentloaded' });
  await other.page.getByRole('button', { name: 'Sign in' }).click();
  await other.page.waitForURL(/\/vision-team\/runs/);
  await other.page.getByText('No runs yet').waitFor();
  await other.close();
  expect(complaints).toEqual([]);
  await close();
});

test('row height and theme are stored, and the keyboard map opens', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/settings?tab=appearance`, 'Comfortable');
  await page.getByRole('radio', { name: /Comfortable/ }).check();
  await page.getByRole('radio', { name: /^Dark/ }).check();
  await visit(page, `${palestra.url}/keys`, 'Create key');
  await page.locator('[data-row]').first().waitFor();
  const heights = () =>
    page.locator('[data-row]').evaluateAll((rows) => [...new Set(rows.map((row) => row.getBoundingClientRect().height))]);
  await expect.poll(heights).toEqual([34]);
  expect(await page.evaluate(() => document.documentElement.dataset['theme'])).toBe('dark');
  await visit(page, `${palestra.url}/settings?tab=keyboard`, 'Open the keyboard map');
  await page.getByRole('button', { name: /Open the keyboard map/ }).click();
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test('the checker shows the fields of the upload of each trainer', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/check`, 'How does Palestra read an upload?');
  const values = async () => {
    const rows = await page
      .getByRole('row')
      .evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent ?? '')));
    return Object.fromEntries(rows.map(([name, value, known]) => [name, `${value} ${known}`]));
  };
  const expected: [name: string, source: string, values: Record<string, string>][] = [
    [
      'SkyRL',
      'skyrl',
      { task: '17 parsed', step: '– unknown', reward: '1.25 reported', 'stop reason': 'finished parsed', turns: '2 reported' },
    ],
    [
      'slime, miles',
      'slime/miles',
      { step: '– unknown', reward: '1.50 reported', 'stop reason': 'finished reported', phase: '~train inferred' },
    ],
    [
      'tinker',
      'tinker',
      { task: '4 parsed', step: '12 reported', sample: '3 reported', reward: '– unknown', 'stop reason': 'max_tokens reported' },
    ],
    ['firehorse', 'firehorse', { task: '1 reported', phase: 'eval reported', reward: '1.00 parsed' }],
    [
      'Custom loop with all fields',
      'generic',
      { step: '40 reported', group: 'g-40-9 reported', sample: '2 reported', reward: '.250 reported' },
    ],
  ];
  for (const [name, source, fields] of expected) {
    await page.getByLabel('As sent by').selectOption(name);
    await page.locator('.chip', { hasText: new RegExp(`^${source}$`) }).waitFor();
    await expect.poll(async () => [name, await values()]).toEqual([name, expect.objectContaining(fields)]);
  }
  await expect.poll(() => new URL(page.url()).search).toBe('?example=recommended');
  await page.getByText('The upload has all recommended fields.').waitFor();

  const secret = { eventType: 'message', eventId: rollout, rolloutEventId: rollout, type: 'thought', index: 0, content: 'secret-text' };
  await page.getByLabel('An event or a batch, as JSON').fill(JSON.stringify([secret]));
  await page.getByText('Rejected with status 422').waitFor();
  await expect.poll(() => page.getByRole('list', { name: 'Problems' }).innerText()).toContain('type must be one of');
  const answer = await fetch(`${palestra.url}/v1/rollouts`, {
    method: 'POST',
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ events: [secret] }),
  });
  const told = (await answer.json()) as { detail: { msg: string }[] };
  expect(answer.status).toBe(422);
  expect(await page.getByRole('list', { name: 'Problems' }).innerText()).toContain(told.detail[0]!.msg);
  expect(page.url()).not.toContain('secret');
  expect(complaints).toEqual([]);
  await close();
});

test('every page is sound and accessible in every view', async () => {
  await createShare(palestra, { rollout });
  const { page, complaints, close } = await openPage(browser, palestra, light);
  const pages: [name: string, path: string, text: string][] = [
    ['keys', '/keys', 'Create key'],
    ['settings-organisation', '/settings', 'Keep rollouts for'],
    ['settings-members', '/settings?tab=members', 'Sign-in link'],
    ['settings-shares', '/settings?tab=shares', 'Revoke…'],
    ['settings-appearance', '/settings?tab=appearance', 'Comfortable'],
    ['settings-keyboard', '/settings?tab=keyboard', 'Open the keyboard map'],
    ['check', '/check?example=skyrl', 'Missing recommended fields'],
    ['check-empty', '/check', 'How does Palestra read an upload?'],
  ];
  for (const [name, path, text] of pages) {
    await visit(page, palestra.url + path, text);
    await expectSoundInEveryView(page, name, { axe: true });
  }
  expect(complaints).toEqual([]);
  await close();
}, 300_000);

test('the navigation collapses to icons, keeps the names of its links, and stays collapsed after a reload', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/settings`, 'Members');
  const rail = page.getByRole('navigation', { name: 'Main' }).locator('..');
  const width = () => rail.evaluate((element) => element.getBoundingClientRect().width);
  const fold = page.getByRole('button', { name: 'Collapse navigation' });
  expect(await width()).toBe(200);
  await fold.click();
  await expect.poll(width).toBe(48);
  await page.reload();
  await expect.poll(width).toBe(48);
  expect(await fold.getAttribute('aria-pressed')).toBe('true');
  expect(await rail.evaluate((element) => element.scrollWidth - element.clientWidth)).toBeLessThanOrEqual(0);
  expect(await axeFaults(page)).toEqual([]);
  await expectSound(page);
  const help = (await page.getByRole('button', { name: 'Keyboard shortcuts' }).boundingBox())!;
  expect(help.y + help.height).toBeLessThanOrEqual(800);
  await shoot(page, 'rail-folded-1280-light');
  await page.getByRole('link', { name: 'Sessions' }).click();
  await page.waitForURL(/\/sessions$/);
  await fold.click();
  await expect.poll(width).toBe(200);
  expect(complaints).toEqual([]);
  await close();
});
