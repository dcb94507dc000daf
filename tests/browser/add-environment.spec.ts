import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEnvironment, serve, tool } from '@palestra/environment-kit';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';

import { axeFaults, launch, openPage, shoot, type View, visit } from './browser.ts';

/** An environment is added by the URL of its server, which is checked step by step. */

let palestra: SharedPalestra;
let browser: Browser;
let running: Awaited<ReturnType<typeof serve>>;
const light: View = { width: 1280, theme: 'light' };
const orchard = defineEnvironment({
  name: 'orchard',
  splits: ['train'],
  tasks: () => [{}, {}],
  prompt: () => 'Which tree?',
  tools: { pick: tool({ description: 'Picks.', input: z.object({}), run: () => 'An apple.' }) },
});

beforeAll(async () => {
  running = await serve([orchard]);
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
});
afterAll(async () => {
  await running?.close();
});

test('a server is checked step by step: one that works, and one that is not there', async () => {
  const { page, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/environments`, 'Environments');
  await page.getByRole('button', { name: 'Add environment' }).click();
  const dialog = page.getByRole('dialog', { name: 'Add environment' });
  const checks = dialog.getByRole('list', { name: 'Checks' });
  const add = async (name: string, url: string) => {
    await dialog.getByLabel('URL').fill(url);
    await dialog.getByLabel('Name').fill(name);
    await dialog.getByRole('button', { name: 'Add and check' }).click();
  };

  await add('orchard', running.url);
  await checks.getByText('A session opens and closes').waitFor();
  await expect.poll(() => checks.getByRole('img', { name: 'done' }).count()).toBe(4);
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
  expect(await checks.getByRole('img', { name: 'done' }).count()).toBe(0);
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('row', { name: /orchard/ }).waitFor();
  expect(await page.getByRole('row', { name: /nowhere/ }).count()).toBe(0);
  await close();
});
