import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import type { AxeResults } from 'axe-core';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { launch, openPage, type View, visit } from './browser.ts';
import { runName, uploadRun } from './rollouts.data.ts';

/** What people do on the pages, and that everybody can: the snippet as shown, live news, keys, accessibility. */

let palestra: Palestra;
let browser: Browser;
const light: View = { width: 1280, theme: 'light' };

beforeAll(async () => {
  [palestra, browser] = await Promise.all([startPalestra({ env: { PALESTRA_BUNDLED_ENVIRONMENTS: '1' } }), launch()]);
});
afterAll(async () => {
  await browser?.close();
  await palestra?.stop();
});

test('the snippet of an empty organisation runs as it is shown, and its run appears without a reload', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, palestra.url, 'No run yet');
  const snippet = (await page.locator('pre', { hasText: 'from openreward import' }).innerText()).trim();
  const python = process.env['PALESTRA_PYTHON_V167'];
  if (!python && process.env['CI']) throw new Error('PALESTRA_PYTHON_V167 is not set');
  if (python) {
    const address = { OPENREWARD_URL: palestra.url, OPENREWARD_API_URL: palestra.url, OPENREWARD_SESSION_URL: palestra.url };
    const env = { ...process.env, ...address, OPENREWARD_API_KEY: palestra.apiKey, OPENREWARD_DISABLE_UPDATE_CHECK: '1' };
    await promisify(execFile)(python, ['-c', snippet], { env, timeout: 60_000 });
    await page.locator('[data-row]', { hasText: 'first-run' }).waitFor({ timeout: 10_000 });
    expect(await page.locator('main').innerText()).toContain('.100');
  }
  expect(complaints).toEqual([]);
  await close();
});

test('a rollout that arrives while the run is open shows up by itself', async () => {
  await uploadRun(palestra);
  const { page, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(runName)}`, 'whodunit-train-7-r3');
  const before = await page.locator('main').innerText();
  const count = Number(/([\d\u202f\s]+) rollouts/.exec(before)![1]!.replaceAll(/\D/g, ''));
  const event = { eventType: 'rollout', eventId: crypto.randomUUID(), timestamp: Date.now(), runName, rolloutName: 'the-late-one' };
  await fetch(`${palestra.url}/v1/rollouts`, {
    method: 'POST',
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ events: [event] }),
  });
  await expect.poll(() => page.locator('main').innerText(), { timeout: 10_000 }).toMatch(new RegExp(`${count + 1} rollouts`));
  await close();
});

test('a key is made, shown once, works, and is revoked', async () => {
  const { page, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/keys`, 'Create key');
  await page.getByLabel('Name of the new key').fill('trainer-2');
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

describe.each<View>([light, { width: 1280, theme: 'dark' }])('in $theme', (view) => {
  test('no page has a serious or critical accessibility fault', async () => {
    const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
    const { rollouts } = await listRollouts();
    const { page, close } = await openPage(browser, palestra, view);
    const pages: [path: string, text: string][] = [
      ['/', runName],
      [`/${palestra.namespace}/runs/${encodeURIComponent(runName)}`, 'whodunit-train-7-r3'],
      [`/rollout/${rollouts.find(({ rolloutName }) => rolloutName === 'whodunit-train-7-r3')!.id}`, 'finished'],
      ['/environments', 'whodunit'],
      ['/environments/palestra/whodunit', 'interview'],
      ['/keys', 'Create key'],
    ];
    for (const [path, text] of pages) {
      await visit(page, palestra.url + path, text);
      await page.waitForTimeout(300);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run());
      const grave = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
      const faults = grave.flatMap(({ id, nodes }) =>
        nodes.slice(0, 3).map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary ?? ''}`),
      );
      expect(faults, path).toEqual([]);
    }
    await close();
  });
});

async function listRollouts(): Promise<{ rollouts: { id: string; rolloutName: string }[] }> {
  const headers = { 'x-api-key': palestra.apiKey };
  const runs = (await (await fetch(`${palestra.url}/v1/runs?name=${encodeURIComponent(runName)}`, { headers })).json()) as {
    runs: { id: string }[];
  };
  const answer = await fetch(`${palestra.url}/v1/runs/${runs.runs[0]!.id}/rollouts?limit=500`, { headers });
  return (await answer.json()) as { rollouts: { id: string; rolloutName: string }[] };
}
