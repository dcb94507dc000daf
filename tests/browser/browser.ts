import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { AxeResults } from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page, type Request } from 'playwright-core';
import { expect, vi } from 'vitest';
import type { SharedPalestra } from '../support/palestra.ts';

const screenshots = path.resolve(import.meta.dirname, '../../artifacts/screenshots');
const quietFlags = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update'];

/** Files of one worker share its modules (`isolate: false`), so there is one browser per worker. */
let browser: Promise<Browser> | undefined;

/** The browser of this worker. Tests open pages in it (`openPage`) and do not close it: Playwright kills it at the end of the worker. */
export function launch(): Promise<Browser> {
  mkdirSync(screenshots, { recursive: true });
  const args = ['--no-sandbox', '--disable-sync', '--disable-dev-shm-usage', '--process-per-site', ...quietFlags];
  browser ??= chromium.launch({ executablePath: '/usr/bin/chromium', headless: true, args });
  return browser;
}

export interface View {
  width: 1280 | 1920;
  theme: 'light' | 'dark';
}
export interface Watched {
  page: Page;
  /** Console errors and warnings (including CSP violations), page errors, and requests to other origins. */
  complaints: string[];
  close: () => Promise<void>;
}

/** The views in which every page is checked. */
const views: readonly View[] = [
  { width: 1280, theme: 'light' },
  { width: 1280, theme: 'dark' },
  { width: 1920, theme: 'dark' },
  { width: 1920, theme: 'light' },
];
const sizeOf = ({ width }: View) => ({ width, height: width === 1280 ? 800 : 1000 });

/** Number of pending requests of a page, without event streams and followed logs, which never end. */
const pending = new WeakMap<Page, Set<Request>>();
/** Requests of a page that got no response, with the reason. */
const failures = new WeakMap<Page, string[]>();

function watchRequests(page: Page): void {
  const open = new Set<Request>();
  pending.set(page, open);
  page.on('request', (request) => {
    // A navigation ends the requests of the previous page, and Playwright does not report every such end.
    if (request.isNavigationRequest() && request.frame() === page.mainFrame()) open.clear();
    const { pathname, searchParams } = new URL(request.url());
    if (!/\/(stream|events)\b/.test(pathname) && searchParams.get('follow') !== 'true') open.add(request);
  });
  page.on('requestfinished', (request) => open.delete(request));
  const failed: string[] = [];
  failures.set(page, failed);
  page.on('requestfailed', (request) => {
    open.delete(request);
    failed.push(`${request.failure()?.errorText} ${request.url()}`);
  });
}

/** A context with an idle page of the service. It keeps the process alive (`--process-per-site`) that has compiled the dashboard. */
interface WarmContext {
  context: BrowserContext;
  anchor: Page;
}
/** Warm unused contexts by view. A page of a new context loads several times slower. */
const idle = new Map<string, WarmContext[]>();

/** A context without open pages, cookies, permissions or stored data of the service. */
async function acquireContext(browser: Browser, origin: string, view: View): Promise<WarmContext> {
  const pooled = idle.get(JSON.stringify(view))?.pop();
  const context = pooled?.context ?? (await browser.newContext({ viewport: sizeOf(view), colorScheme: view.theme }));
  context.setDefaultTimeout(60_000);
  const anchor = pooled?.anchor ?? (await context.newPage());
  if (!pooled) await anchor.goto(`${origin}/health`);
  const devtools = await context.newCDPSession(anchor);
  await devtools.send('Storage.clearDataForOrigin', { origin, storageTypes: 'local_storage,indexeddb,cache_storage,service_workers' });
  await devtools.detach();
  return { context, anchor };
}

async function releaseContext(warm: WarmContext, view: View): Promise<void> {
  const { context, anchor } = warm;
  const pages = context.pages().filter((page) => page !== anchor);
  await Promise.all(pages.map((page) => page.close()));
  await Promise.all([context.clearCookies(), context.clearPermissions()]);
  const key = JSON.stringify(view);
  idle.set(key, [...(idle.get(key) ?? []), warm]);
}

/** Closes the contexts that failed tests left open, so that their pages do not run beside the next file. */
export async function closeUnreleased(): Promise<void> {
  const unused = new Set([...idle.values()].flat().map(({ context }) => context));
  const open = (await browser)?.contexts() ?? [];
  await Promise.all(open.filter((context) => !unused.has(context)).map((context) => context.close()));
}

/** A signed-in page in its own context that records every problem. */
export async function openPage(browser: Browser, palestra: SharedPalestra, view: View): Promise<Watched> {
  const warm = await acquireContext(browser, palestra.url, view);
  const { context } = warm;
  const login = await context.request.post(`${palestra.url}/v1/login`, { data: { key: palestra.apiKey } });
  expect(login.ok()).toBe(true);
  const page = await context.newPage();
  watchRequests(page);
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
  return { page, complaints, close: () => releaseContext(warm, view) };
}

/** Counts what the reader does from now on, also after a navigation: presses of the pointer, and of keys. */
export async function countActions(page: Page): Promise<() => number> {
  let actions = 0;
  await page.exposeFunction('countAction', () => {
    actions += 1;
  });
  const listen = () => {
    const count = (event: Event) => event.isTrusted && (window as unknown as { countAction: () => void }).countAction();
    for (const type of ['pointerdown', 'keydown']) addEventListener(type, count, true);
  };
  await page.addInitScript(listen);
  await page.evaluate(listen);
  return () => actions;
}

/** A page of a browser without a session, in its own context. `refused`: statuses and paths of answers that are errors. */
export async function openStranger(browser: Browser, { width, theme }: { width: number; theme: View['theme'] }) {
  const context = await browser.newContext({ viewport: { width, height: width < 500 ? 844 : 800 }, colorScheme: theme });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  watchRequests(page);
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // The browser logs every refused request: see `refused`.
    const expected = /status of 40[14]/.test(message.text());
    if ((message.type() === 'error' || message.type() === 'warning') && !expected) complaints.push(message.text());
  });
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() >= 400) refused.push(`${response.status()} ${new URL(response.url()).pathname}`);
  });
  return { page, complaints, refused, close: () => context.close() };
}

/** A page with an event stream never reaches `networkidle`; wait for its content instead. The error has its text and failed requests. */
export async function visit(page: Page, url: string, text: string): Promise<void> {
  await page.goto(url, { waitUntil: 'domcontentloaded' });
  await page
    .getByText(text)
    .first()
    .waitFor()
    .catch(async (cause: unknown) => {
      const shown = await page.locator('body').innerText({ timeout: 5_000 }).catch(String);
      throw new Error(`no “${text}” at ${page.url()}:\n${[shown, ...(failures.get(page) ?? [])].join('\n')}`, { cause });
    });
}

/** Presses a key that a control of the page announces, after the control exists: text can appear before the key handlers. */
export async function pressShortcut(page: Page, key: string): Promise<void> {
  // Playwright writes `Control+k` as `Control+K`. For single letters the capital is another key.
  await page
    .locator(`[aria-keyshortcuts~="${key}"${key.length > 1 ? ' i' : ''}]`)
    .first()
    .waitFor();
  await page.keyboard.press(key);
}

/** Presses a key twice without a pause, for reactions within milliseconds on a busy machine. */
export async function pressTwice(page: Page, key: string): Promise<void> {
  await page.evaluate((name) => {
    for (let press = 0; press < 2; press += 1)
      document.activeElement!.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
  }, key);
}

/** Waits until all finite animations have ended and two frames have been drawn. */
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

/** Waits until the page has no pending requests and no busy part, and does not move. */
export async function loaded(page: Page): Promise<void> {
  const busyParts = () => page.locator('main [aria-busy=true]').evaluateAll((all) => all.map((one) => one.outerHTML.slice(0, 160)));
  const busy = async () => [...[...(pending.get(page) ?? [])].map((request) => request.url()), ...(await busyParts())];
  await expect.poll(busy, { message: 'open requests and busy parts' }).toEqual([]);
  await atRest(page);
  // The last answer may have caused further requests.
  await expect.poll(busy, { message: 'open requests and busy parts' }).toEqual([]);
}

/** Runs `check` in both widths and both themes on one loaded page, which follows the window and the system. */
export async function inEveryView(page: Page, check: (view: View, name: string) => Promise<void>): Promise<void> {
  for (const view of views) {
    await page.setViewportSize(sizeOf(view));
    await page.emulateMedia({ colorScheme: view.theme });
    await page.locator(`html[data-theme=${view.theme}]`).waitFor();
    await loaded(page);
    await check(view, `${view.width}-${view.theme}`);
  }
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * Serious and critical accessibility problems found by axe. `colours`: only rules that a theme can affect, because both themes have the
 * same structure.
 */
export async function axeFaults(page: Page, only?: 'colours'): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe);
  const { violations } = await page.evaluate(
    (rules) =>
      (globalThis as unknown as { axe: { run(options: object): Promise<AxeResults> } }).axe.run({
        resultTypes: ['violations'],
        ...(rules && { runOnly: rules }),
      }),
    only && ['color-contrast', 'link-in-text-block'],
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes
        .slice(0, 3)
        .map(({ target, html, failureSummary }) => `${id}: ${target.join(' ')} ${html.slice(0, 160)} ${failureSummary ?? ''}`),
    );
}

/** Heads of columns and tabs that begin with a lower-case letter, besides names of figures such as `pass@1` and `p50`. */
export const lowerCaseHeads = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    [...document.querySelectorAll('[role=columnheader], th[scope=col], [role=tab], [role=menuitem], summary')]
      .map((head) => head.textContent!.trim())
      .filter((text) => /^\p{Ll}/u.test(text) && !/^(?:n|p|std|\S*[@_/.\d]\S*)(?=\s|$)/.test(text)),
  );

/** Repeats a read until it returns the same value twice, a quarter of a second apart. */
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

/** Retries `expectations` for a while, because the data may be written a moment later. */
export const soon = (expectations: () => Promise<void>): Promise<void> => vi.waitFor(expectations, { timeout: 60_000, interval: 200 });

export async function expectSound(page: Page): Promise<void> {
  const overflow = () =>
    page.evaluate(() => {
      const main = document.querySelector('main')!;
      return Math.max(document.documentElement.scrollWidth - innerWidth, main.scrollWidth - main.clientWidth);
    });
  // Parts of a loading page can move each other.
  await expect.poll(overflow, { message: 'horizontal overflow in px' }).toBeLessThanOrEqual(0);
  const text = await page.locator('body').innerText();
  expect(text).not.toMatch(/\b(NaN|undefined|Infinity|\[object Object\])\b/);
}

export const shoot = (page: Page, name: string) => page.screenshot({ path: path.join(screenshots, `${name}.png`) });

/** Takes screenshots in every view and checks widths, and with `axe` accessibility. */
export const expectSoundInEveryView = (page: Page, name: string, look: { axe?: boolean } = {}): Promise<void> =>
  inEveryView(page, async (view, suffix) => {
    await shoot(page, `${name}-${suffix}`);
    await expectSound(page);
    if (!look.axe) return;
    // The other theme of a width changes colours only.
    const isFirstOfWidth = view.theme === (view.width === 1280 ? 'light' : 'dark');
    expect(await axeFaults(page, isFirstOfWidth ? undefined : 'colours'), `${name} ${suffix}`).toEqual([]);
  });
