import type { Browser } from 'playwright-core';
import { beforeAll, expect, test, vi } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { expectSoundInEveryView, launch, openPage, shoot, type View, visit } from './browser.ts';
import { runName, toolResult, uploadRun } from './rollouts.data.ts';
import { uploadRollout } from './upload.ts';

let palestra: SharedPalestra;
let browser: Browser;
let ids: Awaited<ReturnType<typeof uploadRun>>;
let empty: { text: string; complaints: string[] };

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  const watched = await openPage(browser, palestra, { width: 1280, theme: 'light' });
  await visit(watched.page, palestra.url, 'No runs yet');
  await watched.page.getByText(`OPENREWARD_API_KEY=${palestra.apiKey.slice(0, 6)}`).waitFor();
  empty = { text: await watched.page.locator('main').innerText(), complaints: watched.complaints };
  await shoot(watched.page, 'runs-empty-1280-light');
  await watched.close();
  ids = await uploadRun(palestra);
  // Lists stay as they were read: what was uploaded is derived before they are.
  await vi.waitFor(
    async () => {
      const headers = { 'x-api-key': palestra.apiKey };
      const answer = await fetch(`${palestra.url}/v1/runs/${encodeURIComponent(runName)}/tasks`, { headers });
      if (!(await answer.text()).includes('"index":7,')) throw new Error('its tasks are not derived yet');
    },
    { timeout: 60_000, interval: 250 },
  );
});

const light: View = { width: 1280, theme: 'light' };

test('an empty organisation reads its own address and the prefix of its key', () => {
  expect(empty.complaints).toEqual([]);
  expect(empty.text).toContain(`OPENREWARD_API_URL=${palestra.url}`);
  expect(empty.text).toContain(`OPENREWARD_API_KEY=${palestra.apiKey.slice(0, 6)}`);
});

/** Other specs check the other pages, where their data are created. */
test('runs and exports are sound in every view, without requests to other origins', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  for (const [name, path, text] of [
    ['runs', '/', runName],
    ['exports', '/exports', 'Exports'],
  ] as const) {
    await visit(page, palestra.url + path, text);
    await expectSoundInEveryView(page, name);
  }
  expect(complaints).toEqual([]);
  await close();
});

test('a rollout shows the result of its tool with its reward and the finished mark', async () => {
  const { page, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/rollout/${ids.solved}#m-7`, toolResult);
  const card = page.locator('article', { hasText: toolResult });
  await expect.poll(() => card.innerText()).toContain('.980');
  expect(await card.innerText()).toContain('Finished');
  await expect.poll(() => card.getAttribute('aria-current')).toBe('true');
  await close();
});

test('a link to message 2 900 of 3 000 scrolls there and renders few rows', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/rollout/${ids.long}#m-2900`, 'message number 2900');
  expect(await page.locator('article[aria-current=true]').innerText()).toContain('message number 2900');
  expect(await page.locator('article').count()).toBeLessThan(60);
  expect(complaints).toEqual([]);
  await close();
});

test('unknown pages, unknown runs and browsers without a session show what to do', async () => {
  const { page, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/${palestra.namespace}/runs/nobody`, 'Run not found');
  expect((await page.goto(`${palestra.url}/nowhere`))!.status()).toBe(404);
  await page.getByText('Page not found').waitFor();
  await page.context().clearCookies();
  await visit(page, `${palestra.url}/keys`, 'Sign in');
  await shoot(page, 'sign-in-1280-light');
  await page.getByLabel(/API key/).fill('or_wrong');
  await page.keyboard.press('Enter');
  await page.getByText('This API key is unknown or was revoked.').waitFor();
  await page.getByLabel(/API key/).fill(palestra.apiKey);
  await page.keyboard.press('Enter');
  await page.getByText('Create key').waitFor();
  await expect.poll(() => page.title()).toBe('API keys · Palestra');
  await close();
});

test('a server error is shown with an id to copy', async () => {
  const { page, close } = await openPage(browser, palestra, light);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const id = '01890a5d-ac96-774b-bcce-b302099a8057';
  // As ErrorFilter renders what nobody foresaw.
  const text = 'Internal Server Error';
  const json = { statusCode: 500, code: 'internal_error', message: text, detail: text, id };
  await page.route('**/v1/keys', (route) => route.fulfill({ status: 500, json }));
  await visit(page, `${palestra.url}/keys`, `error id ${id}`);
  await shoot(page, 'error-id-1280-light');
  await page.getByRole('button', { name: 'Copy error id' }).click();
  await page.getByText('Copied').waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(`internal_error (500) error id ${id} at ${palestra.url}/keys`);
  await close();
});

test.each(['.', '..'])('pages of a run named %j can be reloaded, linked and opened in another tab', async (name) => {
  const messages = [{ type: 'assistant_message' as const, content: 'x', reward: 1, isFinished: true }];
  await uploadRollout(palestra, { runName: name, task: 7, step: 1, messages });
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/${palestra.namespace}/runs`, runName);
  await page.getByRole('link', { name, exact: true }).click();
  const heading = page.locator('main [data-kpi]').first();
  await heading.waitFor();
  await page.reload();
  await heading.waitFor();
  await expect.poll(() => page.title()).toContain(`${name} `);
  await page.getByRole('link', { name: 'Tasks', exact: true }).click();
  const row = page.getByRole('table', { name: 'Tasks of the run' }).locator('[data-row]').first();
  const opened = page.context().waitForEvent('page');
  await row.click({ modifiers: ['Control'] });
  await page.reload();
  await row.waitFor();
  await shoot(page, `run-${name.length}-dots-1280-light`);
  const tab = await opened;
  await tab.getByText('train 7').first().waitFor();
  expect(new URL(page.url()).pathname).toBe(`/${palestra.namespace}/runs/~${name}/tasks`);
  expect(new URL(tab.url()).pathname).toContain(`/${palestra.namespace}/runs/~${name}/tasks/`);
  expect(complaints).toEqual([]);
  await close();
});
