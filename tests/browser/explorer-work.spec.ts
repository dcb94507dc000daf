import { readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { expectSound, launch, openPage, shoot, type View, visit } from './browser.ts';
import { RUN, sentRollouts, uploadSent } from './explorer.data.ts';

/** What readers keep of the list of rollouts: annotations, saved views and exports. */
let palestra: SharedPalestra;
let browser: Browser;
const sent = sentRollouts().slice(0, 1_200);
const narrow: View = { width: 1280, theme: 'light' };

const address = (search: Record<string, string> = {}) => {
  const query = new URLSearchParams(search).toString();
  return `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(RUN)}/rollouts${query && `?${query}`}`;
};
const api = async (path: string) => {
  const answer = await fetch(`${palestra.url}/v1/runs/${encodeURIComponent(RUN)}/${path}`, { headers: { 'x-api-key': palestra.apiKey } });
  return (await answer.json()) as Record<string, unknown>;
};

/** Derivation and the search index follow the upload by seconds. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 150_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`never came: ${String(holds)}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await uploadSent(palestra, sent);
  await until(async () => (await api('facets'))['total'] === sent.length);
});

/** The run's own count follows its rollouts by seconds, and more on a busy machine: what matters here is that the list has been read. */
async function open(page: Page, search: Record<string, string> = {}): Promise<void> {
  await page.goto(address(search), { waitUntil: 'domcontentloaded' });
  await page
    .getByText(/of \d[\d\u202f]* rollouts/)
    .first()
    .waitFor();
}
const bar = (page: Page) => page.getByRole('combobox', { name: 'Query' });
const facets = (page: Page) => page.getByRole('complementary', { name: 'Facets' });

test('annotations are facets and clauses', async () => {
  const headers = { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' };
  const [good, tagged] = [sent[5]!, sent[900]!];
  for (const body of [
    { rollout: good.id, verdict: 'good' },
    { rollout: tagged.id, tag: 'to review', from_index: 1 },
  ])
    expect((await fetch(`${palestra.url}/v1/annotations`, { method: 'POST', headers, body: JSON.stringify(body) })).ok).toBe(true);
  const { page, complaints, close } = await openPage(browser, palestra, narrow);
  await open(page, { q: 'verdict:good' });
  const only = () => page.locator('[data-row] a').evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).pathname));
  await expect.poll(only).toEqual([`/rollout/${good.id}`]);
  await open(page);
  await facets(page).getByRole('region', { name: 'Tag' }).getByRole('checkbox', { name: 'to review' }).click();
  await expect.poll(() => bar(page).inputValue()).toBe('tag:"to review"');
  await expect.poll(only).toEqual([`/rollout/${tagged.id}`]);
  expect(complaints).toEqual([]);
  await close();
});

test('a view is saved, opened, replaced and deleted', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, narrow);
  await open(page, { q: 'reward:1', sort: 'reward', steps: '2..9' });
  const menu = () => page.getByRole('button', { name: 'Saved views' }).click();
  await menu();
  await page.getByLabel('Name of the view').fill('solved early');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('list', { name: 'Views' }).getByText('solved early').waitFor();
  await open(page);
  await menu();
  await page.getByRole('list', { name: 'Views' }).getByText('solved early').click();
  await page.waitForURL(
    (url) =>
      url.searchParams.get('q') === 'reward:1' && url.searchParams.get('sort') === 'reward' && url.searchParams.get('steps') === '2..9',
  );
  await page.keyboard.press('Escape');
  await bar(page).fill('reward:0');
  await bar(page).press('Enter');
  await page.waitForURL((url) => url.searchParams.get('q') === 'reward:0');
  await menu();
  await page.getByRole('button', { name: 'Replace solved early with the current view' }).click();
  await page.getByRole('list', { name: 'Views' }).getByText('reward:0').waitFor();
  await page.getByRole('button', { name: 'Delete the view solved early' }).click();
  await page.getByRole('button', { name: 'Delete the view solved early now' }).click();
  await page.getByText('No saved views yet.').waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test('an export finishes, its file has the rows of the query, and it can be erased', { timeout: 180_000 }, async () => {
  const { page, complaints, close } = await openPage(browser, palestra, narrow);
  await open(page, { q: 'stop:finished tool:interview', steps: '2..9' });
  const expected = sent.filter(({ stop, tools, step }) => stop === 'finished' && tools.includes('interview') && step >= 2 && step <= 9);
  await page.getByRole('button', { name: 'Export', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(`${expected.length} rows, one per rollout`).waitFor();
  await dialog.getByRole('radio', { name: /^JSON lines/ }).check();
  await dialog.getByRole('button', { name: 'Export', exact: true }).click();
  await dialog.getByText('complete').waitFor({ timeout: 60_000 });
  const [download] = await Promise.all([page.waitForEvent('download'), dialog.getByRole('link', { name: /\.jsonl/ }).click()]);
  const lines = readFileSync(await download.path(), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { rollout_id: string });
  expect(lines.map(({ rollout_id }) => rollout_id).toSorted()).toEqual(expected.map(({ id }) => id).toSorted());
  await visit(page, `${palestra.url}/exports`, 'step:2..9 stop:finished tool:interview');
  await page.locator('[data-row]').first().waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.getByRole('complementary', { name: 'Selected export' }).getByText(`${expected.length} rollouts`).waitFor();
  await shoot(page, 'exports-1280-light');
  await expectSound(page);
  const erase = page.getByRole('button', { name: /^Erase 2 files/ });
  await erase.click();
  await erase.click();
  await page.getByText('No exports yet').waitFor();
  expect(complaints).toEqual([]);
  await close();
});
