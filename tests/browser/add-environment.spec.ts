import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEnvironment, type RunningServer, serve, tool } from '@palestra/environment-kit';
import { addRemote, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';

import { axeFaults, launch, openPage, shoot, type View, visit } from './browser.ts';

/** An environment is added by the URL of its server, which is checked step by step. */

let palestra: SharedPalestra;
let browser: Browser;
const servers: RunningServer[] = [];
const light: View = { width: 1280, theme: 'light' };
const tools = { pick: tool({ description: 'Picks.', input: z.object({}), run: () => 'An apple.' }) };
const base = { splits: ['train'], prompt: () => 'Which tree?', tools };
const orchard = defineEnvironment({ ...base, name: 'orchard', tasks: () => [{}, {}] });
const empty = defineEnvironment({ ...base, name: 'barren', tasks: () => [] });
const broken = defineEnvironment({
  ...base,
  name: 'broken',
  tasks: () => [{}],
  setup: () => {
    throw new Error('The seeds are missing.');
  },
});

async function start(environment: ReturnType<typeof defineEnvironment>): Promise<string> {
  const server = await serve([environment]);
  servers.push(server);
  return server.url;
}

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.close()));
});

interface Form {
  page: Page;
  close: () => Promise<void>;
  dialog: ReturnType<Page['getByRole']>;
  /** The list of checks. */
  checks: ReturnType<Page['getByRole']>;
  add: (name: string, url: string, protocol?: string) => Promise<void>;
  /** How many checks passed. */
  passed: () => Promise<number>;
}

async function openForm(): Promise<Form> {
  const { page, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/environments`, 'Environments');
  await page.getByRole('button', { name: 'Add environment' }).click();
  const dialog = page.getByRole('dialog', { name: 'Add environment' });
  const checks = dialog.getByRole('list', { name: 'Checks' });
  const add = async (name: string, url: string, protocol = 'ORS') => {
    await dialog.getByRole('radio', { name: protocol }).check();
    await dialog.getByLabel('URL').fill(url);
    await dialog.getByLabel('Name').fill(name);
    await dialog.getByRole('button', { name: 'Add and check' }).click();
  };
  return { page, close, dialog, checks, add, passed: () => checks.getByRole('img', { name: 'done' }).count() };
}

test('a server is checked step by step: one that works, and one that is not there', async () => {
  const { page, close, dialog, checks, add, passed } = await openForm();
  await add('orchard', await start(orchard));
  await checks.getByText('A session opens, gives its prompt and closes').waitFor();
  await expect.poll(passed).toBe(4);
  expect(await checks.innerText()).toMatch(/The server speaks ORS: 1 tool, train\s[\s\S]*It has tasks: 2 tasks in train/);
  expect(await axeFaults(page)).toEqual([]);
  await shoot(page, 'add-environment-1280-light');
  const opened = await fetch(`${palestra.url}/v1/sessions?environment=${palestra.namespace}/orchard`, {
    headers: { 'x-api-key': palestra.apiKey },
  });
  const { sessions } = (await opened.json()) as { sessions: { ended_at: string | null }[] };
  expect(sessions.map(({ ended_at }) => ended_at !== null)).toEqual([true]);

  // A port without a server.
  await add('nowhere', 'http://127.0.0.1:9');
  await checks.getByRole('img', { name: 'failed' }).waitFor();
  expect(await checks.innerText()).toMatch(/a server answers there: .*could not be reached/);
  expect(await passed()).toBe(0);
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('row', { name: /orchard/ }).waitFor();
  expect(await page.getByRole('row', { name: /nowhere/ }).count()).toBe(0);
  await close();
});

/** The first check that fails ends the checks: how many passed before it, and what it says. */
const wrongServers: [name: string, environment: ReturnType<typeof defineEnvironment>, protocol: string, passed: number, text: RegExp][] = [
  ['of another protocol', orchard, 'OpenEnv', 0, /a server answers there: .*does not speak OpenEnv/],
  ['without tasks', empty, 'ORS', 2, /It has tasks: Every split is empty, so no task can be opened\./],
  ['whose sessions fail', broken, 'ORS', 3, /A session opens, gives its prompt and closes: .*The seeds are missing\./],
];

test.each(wrongServers)('a server %s: the check says so, and nothing stays', async (name, environment, protocol, before, text) => {
  const { page, close, dialog, checks, add, passed } = await openForm();
  const slug = `wrong-${environment.name}`;
  await add(slug, await start(environment), protocol);
  await checks.getByRole('img', { name: 'failed' }).waitFor();
  expect(await checks.innerText()).toMatch(text);
  expect(await passed()).toBe(before);
  expect(await axeFaults(page)).toEqual([]);
  await shoot(page, `add-environment-${name.replaceAll(' ', '-')}-1280-light`);

  // An address without a server of the protocol is not added.
  const remove = dialog.getByRole('button', { name: 'Remove environment' });
  await expect.poll(() => remove.count()).toBe(before === 0 ? 0 : 1);
  if (before > 0) {
    await remove.click();
    await checks.getByText('Removed').waitFor();
  }
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page
    .getByRole('row', { name: /whodunit/ })
    .first()
    .waitFor();
  await expect.poll(() => page.getByRole('row', { name: new RegExp(slug) }).count()).toBe(0);
  await close();
});

test('libraries of Python are ready to add: the commands, then the environment that they registered', async () => {
  const { page, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/environments`, 'Environments');
  await page.getByRole('region', { name: 'Ready to add' }).getByRole('button', { name: 'textarena' }).click();
  const dialog = page.getByRole('dialog', { name: 'Add environment' });
  await dialog.getByRole('tab', { name: 'reasoning-gym' }).click();
  const commands = dialog.getByRole('region', { name: 'Commands' });
  await dialog.getByLabel('Dataset').fill('chain_sum');
  await expect.poll(() => commands.innerText()).toContain(`PALESTRA_URL=${palestra.url}`);
  expect(await commands.innerText()).toContain('env push reasoning-gym:chain_sum --name chain-sum');
  await dialog.getByText('Waiting for chain-sum…').waitFor();
  expect(await axeFaults(page)).toEqual([]);
  await shoot(page, 'add-from-library');
  await addRemote(palestra, 'chain-sum', await start(orchard));
  await dialog.getByRole('link', { name: /Open .*chain-sum/ }).waitFor();
  await dialog.getByLabel('Dataset').fill('a b');
  await dialog.getByText('A name has letters').waitFor();
  await close();
});

test('an environment without a version offers no Play', async () => {
  const headers = { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' };
  const created = await fetch(`${palestra.url}/v1/environments`, { method: 'POST', headers, body: JSON.stringify({ name: 'bare' }) });
  expect(created.status).toBe(200);
  const { page, close } = await openPage(browser, palestra, light);
  const play = page.locator('header').getByRole('link', { name: 'Play', exact: true });
  await visit(page, `${palestra.url}/environments/palestra/whodunit?tab=tasks`, 'whodunit');
  await play.waitFor();
  const address = `${palestra.url}/environments/${palestra.namespace}/bare?tab=tasks`;
  await visit(page, address, 'This environment has no version yet.');
  expect(await play.count()).toBe(0);
  await page.keyboard.press('p');
  await page.keyboard.press(']');
  await page.waitForURL(/tab=tools/);
  await close();
});
