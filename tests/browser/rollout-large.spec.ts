import type { Browser, Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { launch, loaded, openPage, pressTwice, settled, type View, visit, type Watched } from './browser.ts';
import { type UploadedMessage, uploadRollout } from './upload.ts';

/** Rollouts with 10 000 messages, and with a text of 50 MB. */
let palestra: SharedPalestra;
let browser: Browser;
const runName = 'viewer suite';
const narrow: View = { width: 1280, theme: 'light' };
const ids = { long: '', huge: '' };

const call = (id: string, name: string, args: object, result: string, more: Partial<UploadedMessage> = {}): UploadedMessage[] => [
  { type: 'tool_call', name, callId: id, content: JSON.stringify(args) },
  { type: 'tool_result', callId: id, content: result, ...more },
];

/** 10 000 messages of different heights, so that the position of a row does not follow from its number. */
function longMessages(): UploadedMessage[] {
  const messages: UploadedMessage[] = [{ type: 'user_message', content: 'Begin.' }];
  while (messages.length < 9_999) {
    const n = messages.length;
    if (n % 7 === 1) messages.push({ type: 'reasoning', content: `thought ${n} `.repeat(1 + (n % 40)) });
    else if (n % 5 === 2)
      messages.push(...call(`c${n}`, n % 2 ? 'search' : 'read', { q: `place ${n}` }, `line of ${n}\n`.repeat(1 + (n % 23))));
    else messages.push({ type: 'assistant_message', content: `message ${n} ${'words '.repeat((n * 13) % 120)}` });
  }
  messages[7_777] = { type: 'assistant_message', content: 'Only here stands the word quixotically, far from everything.' };
  return [...messages.slice(0, 9_999), { type: 'assistant_message', content: 'The end.', reward: 1, isFinished: true }];
}

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  ids.long = await uploadRollout(palestra, { runName, task: 3, step: 5, messages: longMessages() });
  const huge = `${'first line of fifty megabytes\n'.repeat(1_000)}${'x'.repeat(50_000_000)}`;
  ids.huge = await uploadRollout(palestra, {
    runName,
    task: 4,
    step: 5,
    messages: [{ type: 'user_message', content: 'dump it' }, ...call('h', 'dump', {}, huge)],
  });
}, 240_000);

const open = (watched: Watched, id: string, text: string, hash = '') => visit(watched.page, `${palestra.url}/rollout/${id}${hash}`, text);
const article = (page: Page, anchor: number) => page.locator(`article[data-anchor="${anchor}"]`);
const topOf = (page: Page, anchor: number) =>
  article(page, anchor).evaluate((row) => row.getBoundingClientRect().top - row.closest('[role=region]')!.getBoundingClientRect().top);

describe('10 000 messages', () => {
  test('render few rows; #m-9000 scrolls to its row and stays there', async () => {
    const watched = await openPage(browser, palestra, narrow);
    const { page, complaints } = watched;
    await open(watched, ids.long, '9000', '#m-9000');
    await article(page, 9000).waitFor();
    await article(page, 9000).getByText('9000').first().waitFor();
    const landed = await settled(page, () => topOf(page, 9000));
    expect(Math.abs(landed)).toBeLessThan(24);
    await loaded(page);
    expect(Math.abs((await topOf(page, 9000)) - landed)).toBeLessThan(2);
    await expect.poll(() => article(page, 9000).getAttribute('aria-current')).toBe('true');
    const few = async () => {
      expect(await page.locator('article').count()).toBeLessThanOrEqual(300);
      expect(await page.locator('nav[aria-label=Outline] button').count()).toBeLessThanOrEqual(300);
    };
    await few();
    const feed = page.getByRole('feed').locator('article').first();
    expect(Number(await feed.getAttribute('aria-setsize'))).toBeGreaterThan(8_000);
    await page.keyboard.press('G');
    await page.getByRole('feed').getByText('The end.').waitFor();
    await pressTwice(page, 'g');
    await page.getByRole('feed').getByText('Begin.').waitFor();
    await page.getByRole('region', { name: 'Transcript, scrollable' }).evaluate((one) => (one.scrollTop = one.scrollHeight / 2));
    await loaded(page);
    await few();
    expect(complaints).toEqual([]);
    await watched.close();
  });

  test('selecting rows moves a mark over the minimap without drawing it again', async () => {
    const watched = await openPage(browser, palestra, narrow);
    const { page, complaints } = watched;
    await open(watched, ids.long, '5000', '#m-5000');
    await article(page, 5000).getByText('5000').first().waitFor();
    const bars = page.locator('nav[aria-label=Outline] canvas');
    const width = () => bars.evaluate((canvas: HTMLCanvasElement) => canvas.width);
    // A drawing begins with the size of the canvas.
    await expect.poll(width).toBe(14);
    const mark = bars.locator('xpath=following-sibling::div');
    const height = (await bars.boundingBox())!.height;
    const place = async () => ((await mark.boundingBox())!.y - (await bars.boundingBox())!.y) / height;
    await expect.poll(place).toBeGreaterThan(0.4);
    // Calls of the ledger and the group arrive later, and draw it again.
    await loaded(page);
    await settled(page, () => topOf(page, 5000));
    await bars.evaluate((canvas: HTMLCanvasElement) => void (canvas.width = 99));
    await page.keyboard.press('j');
    await page.waitForURL((url) => url.hash !== '#m-5000');
    await page.keyboard.press('G');
    await expect.poll(place).toBeGreaterThan(0.95);
    expect(await width()).toBe(99);
    expect(complaints).toEqual([]);
    await watched.close();
  });

  test('find counts hits in rows that are not rendered, and Enter goes to the next one', async () => {
    const watched = await openPage(browser, palestra, narrow);
    const { page, complaints } = watched;
    await open(watched, ids.long, 'Begin.');
    await page.keyboard.press('Control+f');
    await page.getByRole('textbox', { name: 'Find in this rollout' }).fill('QUIXOTICALLY');
    await page.getByText('Only here stands the word').waitFor();
    await page.getByText('1 of 1 messages').waitFor();
    await page.waitForURL(/#m-7777$/);
    await expect.poll(() => page.evaluate(() => CSS.highlights.get('find')?.size)).toBe(1);
    await page.getByRole('textbox', { name: 'Find in this rollout' }).fill('place 1');
    // Not what was counted, and where it was, for the word before.
    await expect.poll(() => new URL(page.url()).hash).not.toBe('#m-7777');
    await page.getByText(/\d+ of [\d\u202f]+\+? messages/).waitFor();
    const first = new URL(page.url()).hash;
    await page.keyboard.press('Enter');
    await expect.poll(() => new URL(page.url()).hash).not.toBe(first);
    await page.keyboard.press('Escape');
    await page.getByRole('search').waitFor({ state: 'detached' });
    expect(complaints).toEqual([]);
    await watched.close();
  });
});

test('a text of 50 MB is not read until the reader opens it; then it is read in parts and can be downloaded', async () => {
  const watched = await openPage(browser, palestra, narrow);
  const { page, complaints } = watched;
  const ranges: string[] = [];
  let bytes = 0;
  page.on('request', (request) => {
    if (request.url().includes('/body')) ranges.push(request.headers()['range'] ?? 'everything');
  });
  page.on('requestfinished', async (request) => {
    bytes += (await request.sizes().catch(() => ({ responseBodySize: 0 }))).responseBodySize;
  });
  await open(watched, ids.huge, 'dump it');
  const gate = page.getByRole('button', { name: 'Show raw lines (50 MB)' });
  await gate.waitFor();
  await loaded(page);
  expect(ranges).toEqual([]);
  expect(bytes).toBeLessThan(4_000_000);
  await gate.click();
  await page.getByText('first line of fifty megabytes').first().waitFor();
  await page.getByRole('button', { name: 'Later part' }).click();
  await page.getByRole('region', { name: 'Raw lines, part 2 of 382' }).getByText('xxxx').first().waitFor();
  expect(ranges).toHaveLength(2);
  for (const range of ranges) {
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(range)!;
    expect(Number(to) - Number(from)).toBeLessThan(200_000);
  }
  const href = await page.getByRole('link', { name: 'Download', exact: true }).getAttribute('href');
  const part = await page.request.get(palestra.url + href!, { headers: { range: 'bytes=0-9' } });
  expect([part.status(), await part.text(), part.headers()['content-range']]).toEqual([206, 'first line', 'bytes 0-9/50030000']);
  expect(complaints).toEqual([]);
  await watched.close();
});
