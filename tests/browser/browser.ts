import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { expect, vi } from 'vitest';
import type { SharedPalestra } from '../support/palestra.ts';

const screenshots = path.resolve(import.meta.dirname, '../../artifacts/screenshots');
const quietFlags = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update'];

/** Files of one worker share its modules (`isolate: false`), so this is one browser per worker. */
let browser: Promise<Browser> | undefined;

/** The browser of this worker. Each test opens contexts in it (`openPage`); nobody closes it: Playwright kills it when the worker ends. */
export function launch(): Promise<Browser> {
  mkdirSync(screenshots, { recursive: true });
  const args = ['--no-sandbox', '--disable-sync', '--disable-dev-shm-usage', ...quietFlags];
  browser ??= chromium.launch({ executablePath: '/usr/bin/chromium', headless: true, args });
  return browser;
}

export interface View {
  width: 1280 | 1920;
  theme: 'light' | 'dark';
}
export interface Watched {
  page: Page;
  /** Console errors and warnings (CSP refusals among them), page errors, and requests that would leave the origin. */
  complaints: string[];
  close: () => Promise<void>;
}

/** A signed-in page of its own context that writes down everything that must not happen. */
export async function openPage(browser: Browser, palestra: SharedPalestra, { width, theme }: View): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width, height: width === 1280 ? 800 : 1000 }, colorScheme: theme });
  const login = await context.request.post(`${palestra.url}/v1/login`, { data: { key: palestra.apiKey } });
  expect(login.ok()).toBe(true);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('response', (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()} ${response.url()}`);
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(palestra.url)) complaints.push(`request to ${request.url()}`);
  });
  return { page, complaints, close: () => context.close() };
}

/** `networkidle` never comes on a page with an event stream: wait for what the page is about instead. */
export async function visit(page: Page, url: string, text: string): Promise<void> {
  await page.goto(url, { waitUntil: 'domcontentloaded' });
  await page.getByText(text).first().waitFor();
}

/** Presses a key that a control of the page announces, once that control is there: the text of a page may stand before what hears its keys. */
export async function pressShortcut(page: Page, key: string): Promise<void> {
  // `Control+k` is written `Control+K`; of single letters the large ones are other keys.
  await page
    .locator(`[aria-keyshortcuts~="${key}"${key.length > 1 ? ' i' : ''}]`)
    .first()
    .waitFor();
  await page.keyboard.press(key);
}

/** Presses a key twice without waiting in between: what must come within some milliseconds does so on a busy machine, too. */
export async function pressTwice(page: Page, key: string): Promise<void> {
  await Promise.all([page.keyboard.press(key), page.keyboard.press(key)]);
}

/** Waits until nothing moves but what never ends, and two frames have been drawn since. */
export async function atRest(page: Page): Promise<void> {
  const moving = () =>
    page.evaluate(async () => {
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      return document
        .getAnimations()
        .filter(({ effect, playState }) => playState === 'running' && effect?.getComputedTiming().endTime !== Infinity).length;
    });
  await expect.poll(moving, { message: 'running animations' }).toBe(0);
}

/** Reads until the same is read twice, a quarter of a second apart. */
export async function settled<T>(page: Page, read: () => Promise<T>): Promise<T> {
  let value = await read();
  const holds = async () => {
    const before = JSON.stringify(value);
    await page.waitForTimeout(250);
    value = await read();
    return JSON.stringify(value) === before;
  };
  await expect.poll(holds, { message: 'holds still' }).toBe(true);
  return value;
}

/** `expectations` in due time: what is read may be written a moment later. */
export const soon = (expectations: () => Promise<void>): Promise<void> => vi.waitFor(expectations, { timeout: 20_000, interval: 200 });

export async function expectSound(page: Page): Promise<void> {
  const overflow = () =>
    page.evaluate(() => {
      const main = document.querySelector('main')!;
      return Math.max(document.documentElement.scrollWidth - innerWidth, main.scrollWidth - main.clientWidth);
    });
  // While a page loads its parts may push each other about.
  await expect.poll(overflow, { message: 'horizontal overflow in px' }).toBeLessThanOrEqual(0);
  const text = await page.locator('body').innerText();
  expect(text).not.toMatch(/\b(NaN|undefined|Infinity|\[object Object\])\b/);
}

export const shoot = (page: Page, name: string) => page.screenshot({ path: path.join(screenshots, `${name}.png`) });
