import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DeployView, HostingOffer } from '@palestra/protocol';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createOrganisation } from '../support/organisation.ts';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { axeFaults, expectSound, launch, openPage, shoot, type View, visit } from './browser.ts';

/** An author deploys a folder through the pages, and promotes, tries, rolls back and watches its versions. Environments run as processes. */

let palestra: Palestra;
let browser: Browser;
const light: View = { width: 1280, theme: 'light' };
const root = mkdtempSync(path.join(tmpdir(), 'palestra-pages-'));

const environment = (prompt: string, argument = '') => `
import { defineEnvironment, tool, z } from '@palestra/environment-kit';
console.log('loading the environment');
console.error('error: the score file is missing');
export default defineEnvironment({
  name: 'guess',
  splits: ['train'],
  tasks: () => [{ secret: 7 }],
  prompt: () => ${JSON.stringify(prompt)},
  tools: {
    guess: tool({
      description: 'Guess.',
      input: z.strictObject({ number: z.int()${argument} }),
      run: ({ number }) => {
        console.log('guessed ' + number);
        return { content: 'No', reward: 0 };
      },
    }),
  },
});
`;

/** A folder with this name. */
function folderOf(name: string, files: Record<string, string>): string {
  const folder = path.join(mkdtempSync(path.join(root, 'one-')), name);
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(path.join(folder, path.dirname(file)), { recursive: true });
    writeFileSync(path.join(folder, file), content);
  }
  return folder;
}

async function api<T>(method: string, at: string, body?: object, headers: Record<string, string> = {}): Promise<T> {
  const answer = await fetch(palestra.url + at, {
    method,
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json', ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${at}: ${answer.status} ${text}`);
  return (answer.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text) as T;
}

beforeAll(async () => {
  [palestra, browser] = await Promise.all([
    startPalestra({
      endsWithParent: process.platform === 'linux',
      env: { PALESTRA_HOSTING: 'process', PALESTRA_ALLOW_COMMANDS: '1' },
    }),
    launch(),
  ]);
  // The process that runs instances looks at its engine soon after the start.
  await vi.waitUntil(async () => (await api<HostingOffer>('GET', '/v1/hosting')).hosts, { timeout: 150_000, interval: 500 });
});
afterAll(async () => {
  await palestra?.stop();
  rmSync(root, { recursive: true, force: true });
});

const pageOf = (tab: string) => `${palestra.url}/environments/${palestra.namespace}/guess?tab=${tab}`;
const dialogOf = (page: Page, name: string | RegExp) => page.getByRole('dialog', { name });

async function deployFolder(page: Page, dialog: ReturnType<typeof dialogOf>, folder: string): Promise<void> {
  await dialog.getByRole('button', { name: 'Choose folder' }).waitFor();
  await dialog.locator('input[webkitdirectory]').setInputFiles(folder);
  await dialog.getByText(`${path.basename(folder)}: `).waitFor();
  await dialog.getByRole('button', { name: 'Deploy', exact: true }).click();
}

test('a folder is chosen, built with its log in sight, and is an environment', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/environments`, 'Environments');
  await page.getByRole('button', { name: 'Add environment' }).click();
  const dialog = dialogOf(page, 'Add environment');
  const folder = folderOf('guess', {
    'environment.ts': environment('From 1 to 10?'),
    '.env': 'KEY=secret',
    'notes.txt': 'x',
    '.dockerignore': 'notes.txt',
  });
  await dialog.getByRole('button', { name: 'Choose folder' }).waitFor();
  expect(await axeFaults(page)).toEqual([]);
  await deployFolder(page, dialog, folder);
  await dialog.getByRole('log', { name: 'Build log' }).getByText('Found a module of the environment kit').waitFor();
  await dialog.getByText('✓ Ready').waitFor();
  await dialog.getByText('Version 1 is ready').waitFor();
  expect(await axeFaults(page)).toEqual([]);
  await shoot(page, 'hosting-added-1280-light');
  await dialog.getByRole('link', { name: /Open .*guess/ }).click();
  await page.getByRole('link', { name: 'Deploys' }).click();
  const row = page
    .getByRole('table', { name: /Deploys/ })
    .getByRole('row')
    .nth(1);
  await expect
    .poll(async () => (await row.getByRole('cell').allInnerTexts()).slice(0, 5))
    .toEqual(['✓ Ready', 'Uploaded folder', '–', '1', 'stable']);
  // A session starts the instance that the next pages show.
  const { sid } = await api<{ sid: string }>('POST', '/v1/sessions', {
    environment: `${palestra.namespace}/guess`,
    split: 'train',
    index: 0,
  });
  await api('POST', '/call', { name: 'guess', input: { number: 4 } }, { 'x-session-id': sid });
  expect(complaints).toEqual([]);
  await close();
});

test('a failed build shows the line that failed', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, pageOf('deploys'), 'Uploaded folder');
  await page.getByRole('button', { name: 'Deploy', exact: true }).click();
  const dialog = dialogOf(page, /^Deploy /);
  const files = { 'server.py': '', 'requirements.txt': './does-not-exist\n' };
  await deployFolder(page, dialog, folderOf('broken', files));
  await dialog.getByText('✕ Failed').waitFor();
  const failed = dialog.locator('[data-failed]');
  await failed.getByText(/does-not-exist/).waitFor();
  const number = (await failed.innerText()).match(/\d+/)![0];
  await dialog.getByRole('searchbox', { name: 'Search the log' }).fill('no such text');
  await dialog.getByText('No line matches.').waitFor();
  await dialog.getByRole('button', { name: `Line ${number}` }).click();
  await failed.getByText(/does-not-exist/).waitFor();
  // "Open" leads to the same deploy.
  await dialog.getByRole('link', { name: /Open / }).click();
  await page.waitForURL(/deploy=/);
  await page.locator('main [data-failed]').waitFor();
  expect(await axeFaults(page)).toEqual([]);
  await shoot(page, 'hosting-failed-1280-light');
  expect(complaints).toEqual([]);
  await close();
});

test('a second version is compared, tried as a canary, promoted and rolled back', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, pageOf('deploys'), 'Uploaded folder');
  await page.getByRole('button', { name: 'Deploy', exact: true }).click();
  const deploying = dialogOf(page, /^Deploy /);
  await deploying.getByRole('checkbox', { name: /New sessions get this version/ }).uncheck();
  await deployFolder(page, deploying, folderOf('guess', { 'environment.ts': environment('From 1 to 100?', ', why: z.string()') }));
  await deploying.getByText('✓ Ready').waitFor();
  await page.goto(pageOf('versions'));
  const channels = page.getByRole('list', { name: 'Channels' });
  await channels.getByText('Version 1', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Compare version 2' }).click();
  const diff = dialogOf(page, 'Compare versions');
  await diff.getByRole('region', { name: 'Breaking changes' }).getByText('required argument "why" was added').waitFor();
  await diff.getByRole('deletion').or(diff.locator('del')).first().waitFor();
  expect(await axeFaults(page)).toEqual([]);
  await shoot(page, 'hosting-diff-1280-light');
  await diff.getByRole('button', { name: 'Close' }).click();

  await page.getByRole('button', { name: 'Make version 2 a canary' }).click();
  const canary = dialogOf(page, 'Make version 2 a canary?');
  await canary.getByLabel('Percent').fill('25');
  await canary.getByText('1 breaking change').waitFor();
  await canary.getByRole('button', { name: 'Start canary' }).click();
  await channels.getByText('canary: version 2 gets 25 % of new sessions').waitFor();
  await channels.getByRole('button', { name: 'End canary, channel stable' }).click();
  await dialogOf(page, 'End the canary of stable?').getByRole('button', { name: 'End canary' }).click();
  await channels.getByText('· canary').waitFor({ state: 'detached' });

  await page.getByRole('button', { name: 'Promote version 2' }).click();
  await dialogOf(page, 'Promote version 2?').getByRole('button', { name: 'Promote version 2' }).click();
  await channels.getByText('Version 2', { exact: true }).waitFor();
  await channels.getByRole('button', { name: 'Roll back to 1, channel stable' }).click();
  await dialogOf(page, 'Roll back stable?').getByRole('button', { name: 'Roll back to version 1' }).click();
  await channels.getByText('Version 1', { exact: true }).waitFor();
  const { channels: stored } = await api<{ channels: object[] }>('GET', `/v1/environments/${palestra.namespace}/guess/channels`);
  expect(stored).toMatchObject([{ name: 'stable', version: 1, canary_version: null }]);
  expect(complaints).toEqual([]);
  await close();
});

test('the log is followed and filtered, instances and settings are shown and changed', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, pageOf('logs'), 'guessed 4');
  const log = page.getByRole('log', { name: 'Log of the instances' });
  await page.getByText('Live', { exact: true }).waitFor();
  const { sid } = await api<{ sid: string }>('POST', '/v1/sessions', {
    environment: `${palestra.namespace}/guess@1`,
    split: 'train',
    index: 0,
  });
  await api('POST', '/call', { name: 'guess', input: { number: 9 } }, { 'x-session-id': sid });
  await log.getByText('guessed 9').waitFor();
  // A search applies also while lines arrive all the time, more often than the page waits for the next letter.
  let talks = true;
  const talk = (async () => {
    while (talks) {
      await api('POST', '/call', { name: 'guess', input: { number: 8 } }, { 'x-session-id': sid });
      await sleep(150);
    }
  })();
  await page.getByRole('searchbox', { name: 'Search the log' }).fill('no such text');
  await page.getByText('No line matches.').waitFor();
  talks = false;
  await talk;
  await page.getByRole('searchbox', { name: 'Search the log' }).fill('');
  await api('POST', '/call', { name: 'guess', input: { number: 6 } }, { 'x-session-id': sid });
  await log.getByText('guessed 6').waitFor();
  await page.getByRole('combobox', { name: 'Severity' }).selectOption('Errors');
  await log.getByText('guessed 6').waitFor({ state: 'detached' });
  await log.getByText('the score file is missing').first().waitFor();
  expect(await axeFaults(page)).toEqual([]);

  await visit(page, pageOf('instances'), 'Sessions per instance');
  const row = page
    .getByRole('table', { name: /Instances/ })
    .getByRole('row')
    .filter({ hasText: 'Ready' })
    .first();
  await row.getByRole('link', { name: /^Log of instance/ }).waitFor();
  expect(await axeFaults(page)).toEqual([]);

  await visit(page, pageOf('settings'), 'Repository URL');
  await page.getByLabel('Most instances').fill('2');
  await page.getByRole('button', { name: 'Save settings' }).click();
  await page.getByText('Saved.').waitFor();
  await page.getByLabel('Secret name').fill('API_KEY');
  await page.getByLabel('Value', { exact: true }).fill('never shown again');
  await page.getByRole('button', { name: 'Set secret' }).click();
  await page.getByRole('list', { name: 'Secrets' }).getByText('API_KEY').waitFor();
  await page.getByLabel('Repository URL').fill('https://git.acme.example/envs.git');
  await page.getByRole('button', { name: 'Link repository' }).click();
  await page.getByText('Secret of the webhook', { exact: true }).waitFor();
  await page.getByText(/\/v1\/hooks\/git\//).waitFor();
  expect(await page.locator('body').innerText()).not.toContain('never shown again');
  expect(await axeFaults(page)).toEqual([]);
  const stored = await api<{ max: number }>('GET', `/v1/environments/${palestra.namespace}/guess/hosting`);
  expect(stored.max).toBe(2);
  await page.reload();
  await page.getByText(/\/v1\/hooks\/git\//).waitFor();
  expect(await page.getByText('Secret of the webhook', { exact: true }).count()).toBe(0);
  expect(complaints).toEqual([]);
  await close();
});

test('the pages fit a phone and both themes', async () => {
  const { deploys } = await api<{ deploys: DeployView[] }>('GET', `/v1/environments/${palestra.namespace}/guess/deploys`);
  const places = [
    ['deploys', '', 'Uploaded folder'],
    ['deploys', `&deploy=${deploys.find(({ state }) => state === 'failed')!.id}`, 'build_failed'],
    ['versions', '', 'stable'],
    ['versions', '&from=1&to=2', 'Rewards of a fixed episode'],
    ['instances', '', 'Cold start'],
    ['logs', '', 'guessed 6'],
    ['settings', '', 'Secret name'],
  ] as const;
  const { page, complaints, close } = await openPage(browser, palestra, { width: 1280, theme: 'dark' });
  await page.setViewportSize({ width: 390, height: 844 });
  for (const [at, [tab, more, text]] of places.entries()) {
    await visit(page, `${pageOf(tab)}${more}`, text);
    await expect.poll(() => page.locator('[aria-busy=true]').count()).toBe(0);
    await expectSound(page);
    expect(await axeFaults(page, 'colours'), tab).toEqual([]);
    await shoot(page, `hosting-${tab}-${at}-390-dark`);
  }
  expect(complaints).toEqual([]);
  await close();
});

test('who may not manage the environment sees its versions and channels, and no buttons', async () => {
  await api('PUT', `/v1/environments/${palestra.namespace}/guess/details`, { new_is_private: false });
  const other = await createOrganisation(palestra.url, palestra.apiKey);
  const { page, complaints, close } = await openPage(browser, { ...palestra, apiKey: other.apiKey, namespace: other.name }, light);
  await visit(page, pageOf('versions'), 'Channels');
  await page.getByRole('list', { name: 'Channels' }).getByText('Version 1', { exact: true }).waitFor();
  expect(await page.getByRole('button', { name: /promote|canary|roll back|compare|deploy/i }).count()).toBe(0);
  expect(await page.getByRole('navigation', { name: 'Pages of the environment' }).getByRole('link').allInnerTexts()).toEqual(
    expect.not.arrayContaining(['Deploys', 'Instances', 'Logs', 'Settings']),
  );
  // An address of these tabs shows the first one.
  await page.goto(pageOf('logs'));
  await page.getByText('Live sessions').waitFor();
  expect(complaints).toEqual([]);
  await close();
});
