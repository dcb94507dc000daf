import { readFileSync } from 'node:fs';
import type { CreatedShare, NewShare, ReviewQueueDetail, SessionView } from '@palestra/protocol';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callMessages, randomOf, rolloutEvents, sendEvents } from '../support/fixtures/events.mjs';
import { SMALL_RUN, smallRun } from '../support/fixtures/rollouts.mjs';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import {
  axeFaults,
  expectSound,
  launch,
  loaded,
  lowerCaseHeads,
  openPage,
  openStranger,
  pressShortcut,
  type View,
  visit,
  type Watched,
} from './browser.ts';
import { startDeployed } from './hosting.data.ts';

/** WCAG 2.2 AA as far as a machine sees it: every page and dialog at four widths in both themes, zoom, reduced motion, tables for charts. */
let palestra: SharedPalestra;
let browser: Browser;
let deployed: Awaited<ReturnType<typeof startDeployed>>;
const light: View = { width: 1280, theme: 'light' };
const small = smallRun();
const OTHER_RUN = 'another run still alive';
/** Of one sample: its address is in no group. */
const alive = rolloutEvents(randomOf(90), {
  runName: OTHER_RUN,
  rollout_info: { task_index: 0, current_step: 0 },
  messages: [{ type: 'user_message', content: 'Not over yet.' }, ...callMessages('a', 'search', { place: 'the study' }, 'Dust.')],
});
const ids = { group: '', task: '', session: '', queue: '' };

const get = async <T>(path: string): Promise<T> => {
  const answer = await fetch(palestra.url + path, { headers: { 'x-api-key': palestra.apiKey } });
  if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
};

const post = async <T>(path: string, body: object, more: Record<string, string> = {}): Promise<T> => {
  const headers = { 'x-api-key': palestra.apiKey, 'content-type': 'application/json', ...more };
  const answer = await fetch(palestra.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`POST ${path}: ${answer.status} ${text}`);
  return answer.headers.get('content-type')?.includes('json') ? JSON.parse(text) : (text as T);
};

/** Plays one call of the bundled environment, so that the lists of sessions have a row. */
async function playOnce(): Promise<string> {
  const { sid } = await post<SessionView>('/v1/sessions', { environment: 'palestra/whodunit', split: 'train', index: 0 });
  await post('/call', { name: 'interview', input: { suspect: 'Moss' } }, { 'x-session-id': sid });
  await fetch(`${palestra.url}/v1/sessions/${sid}`, { method: 'DELETE', headers: { 'x-api-key': palestra.apiKey } });
  return sid;
}

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await sendEvents(
    palestra,
    [...small, alive].flatMap(({ events }) => events),
  );
  await post('/v1/alerts', {
    name: 'tool errors of the house',
    condition: { kind: 'metric', metric: 'tool_error', op: 'above', value: 0.99 },
  });
  await post('/v1/webhooks', { name: 'the house', url: 'http://127.0.0.1:9/' });
  const { groups } = await get<{ groups: { key: string; task: { id: string } }[] }>(`/v1/runs/${encodeURIComponent(SMALL_RUN)}/groups`);
  ids.group = groups[0]!.key;
  ids.task = groups[0]!.task.id;
  ids.queue = (await post<ReviewQueueDetail>('/v1/review-queues', { run: SMALL_RUN, name: 'what the judges say', sample: 4 })).id;
  ids.session = await playOnce();
  deployed = await startDeployed(palestra);
});
afterAll(() => deployed?.close());

interface Place {
  name: string;
  path: () => string;
  /** What is there when the page is. */
  text: string;
  /** Opens what is looked at, a dialog or another view of the page. */
  open?: (page: Page) => Promise<void>;
}
const ofRun =
  (rest = '') =>
  () =>
    `/${palestra.namespace}/runs/${encodeURIComponent(SMALL_RUN)}${rest}`;
const ofRollout =
  (rest = '') =>
  () =>
    `/rollout/${small.at(-1)!.id}${rest}`;
const comparison = (count: number) =>
  `/compare?rollouts=${small
    .slice(-count)
    .map(({ id }) => id)
    .join(',')}`;
const dialog = (page: Page) => page.locator('dialog[open], [role=dialog], [role=menu]').first().waitFor();
const press = (key: string) => async (page: Page) => {
  await pressShortcut(page, key);
  await dialog(page);
};
const find = async (page: Page) => {
  // The reader, which hears the key, holds what announces this one.
  await page.locator('[aria-keyshortcuts=d]').waitFor();
  await page.keyboard.press('Control+f');
  await page.getByRole('textbox', { name: 'Find in this rollout' }).waitFor();
};
const click = (name: string | RegExp) => async (page: Page) => {
  await page.getByRole('button', { name }).first().click();
  await dialog(page);
};
const table = (name: string) => (page: Page) => page.getByRole('table', { name }).locator('[data-row]').first().waitFor();

const places: Place[] = [
  { name: 'runs', path: () => '/', text: SMALL_RUN },
  { name: 'keyboard map', path: () => '/', text: SMALL_RUN, open: press('?') },
  { name: 'palette', path: () => '/', text: SMALL_RUN, open: press('Control+k') },
  { name: 'overview', path: ofRun(), text: '160 rollouts', open: (page) => page.locator('canvas').first().waitFor() },
  { name: 'why a step moved', path: ofRun('?why=5'), text: 'Why did step 5 move?' },
  { name: 'overview as SkyRL', path: ofRun('?lens=skyrl'), text: 'reward/avg_raw_reward' },
  { name: 'how a chart is computed', path: ofRun(), text: 'rollouts', open: click(/^How “/) },
  { name: 'definitions', path: ofRun(), text: 'rollouts', open: press('L') },
  { name: 'explorer', path: ofRun('/rollouts?q=stop:finished'), text: 'of 160 rollouts', open: table('Rollouts of the query') },
  {
    name: 'explorer, preview',
    path: ofRun(`/rollouts?sel=${small.at(-1)!.id}`),
    text: 'of 160 rollouts',
    open: table('Rollouts of the query'),
  },
  { name: 'explorer, refused query', path: ofRun('/rollouts?q=stop:finishd'), text: 'stop: expects one of' },
  { name: 'explorer, find', path: ofRun('/rollouts?find=lamp'), text: 'Hits per step' },
  { name: 'explorer, views', path: ofRun('/rollouts'), text: 'of 160 rollouts', open: click('Saved views') },
  { name: 'explorer, columns', path: ofRun('/rollouts'), text: 'of 160 rollouts', open: click(/^Columns/) },
  { name: 'export', path: ofRun('/rollouts'), text: 'of 160 rollouts', open: click('Export') },
  { name: 'create a review queue', path: ofRun('/rollouts'), text: 'of 160 rollouts', open: click('Review') },
  { name: 'review queues', path: () => '/reviews', text: 'what the judges say' },
  { name: 'review', path: () => `/reviews/${ids.queue}`, text: 'Item 1 of 4' },
  { name: 'groups', path: ofRun('/groups'), text: 'pass@1', open: table('Groups') },
  { name: 'group, lanes', path: () => `${ofRun(`/groups/${ids.group}`)()}?view=lanes`, text: 'aligned with sample' },
  { name: 'group, matrix', path: () => `${ofRun(`/groups/${ids.group}`)()}?view=matrix`, text: 'aligned with sample' },
  { name: 'tasks', path: ofRun('/tasks'), text: 'task', open: (page) => page.getByRole('table').locator('[data-row]').first().waitFor() },
  { name: 'task', path: () => `${ofRun('/tasks/')()}${encodeURIComponent(ids.task)}`, text: 'solved' },
  { name: 'tools', path: ofRun('/tools'), text: 'interview' },
  { name: 'failures', path: ofRun('/failures'), text: 'ValueError' },
  { name: 'config', path: ofRun('/config'), text: 'Qwen2.5-3B' },
  { name: 'rollout', path: ofRollout('#m-3'), text: 'Everett Moss' },
  { name: 'rollout, tools', path: ofRollout('?tab=tools'), text: 'Session ledger' },
  { name: 'rollout, task', path: ofRollout('?tab=task'), text: 'Task spec' },
  { name: 'rollout, notes', path: ofRollout('?tab=notes'), text: 'score' },
  { name: 'rollout, raw', path: ofRollout('?tab=raw#m-3'), text: 'Message 3' },
  { name: 'rollout, difference', path: () => `/rollout/${small.at(-1)!.id}?diff=${small.at(-2)!.id}`, text: 'First divergence' },
  { name: 'rollout, find', path: ofRollout(), text: 'find who', open: find },
  { name: 'rollout, more', path: ofRollout(), text: 'find who', open: click('More of this rollout') },
  { name: 'rollout, live', path: () => `/rollout/${alive.id}`, text: 'Not over yet.' },
  { name: 'rollout, for paper', path: ofRollout('?print'), text: 'find who' },
  { name: 'compare runs', path: () => `/compare?runs=${encodeURIComponent(`${SMALL_RUN},${OTHER_RUN}`)}`, text: OTHER_RUN },
  { name: 'choose runs to compare', path: () => '/compare', text: OTHER_RUN },
  { name: 'compare two rollouts', path: () => comparison(2), text: 'accuse' },
  { name: 'compare three rollouts', path: () => comparison(3), text: 'accuse' },
  { name: 'exports', path: () => '/exports', text: 'Exports' },
  { name: 'alerts', path: () => '/alerts', text: 'tool errors of the house' },
  { name: 'new alert', path: () => '/alerts', text: 'tool errors of the house', open: click('New alert') },
  { name: 'alerts, history', path: () => '/alerts?tab=history', text: 'History' },
  { name: 'alerts, webhooks', path: () => '/alerts?tab=webhooks', text: 'Deliveries to the house' },
  { name: 'alert of a chart', path: ofRun(), text: '160 rollouts', open: click(/^Alert on /) },
  { name: 'bell', path: ofRun(), text: '160 rollouts', open: click(/^Alerts(, |$)/) },
  { name: 'sessions', path: () => '/sessions', text: 'Sessions' },
  { name: 'ended sessions', path: () => '/sessions?tab=ended', text: 'whodunit' },
  { name: 'session', path: () => `/sessions/${ids.session}`, text: 'interview' },
  { name: 'slots', path: () => '/sessions?tab=slots', text: 'Sessions' },
  { name: 'environments', path: () => '/environments', text: 'whodunit' },
  ...['tasks', 'tools', 'report', 'runs', 'sessions', 'versions'].map((tab): Place => ({
    name: `environment, ${tab}`,
    path: () => `/environments/palestra/whodunit?tab=${tab}`,
    text: 'whodunit',
  })),
  { name: 'environment', path: () => '/environments/palestra/whodunit', text: 'interview' },
  { name: 'environment without a version', path: () => deployed.undeployed, text: 'undeployed' },
  ...[
    ['versions', 'Version 1'],
    ['deploys', '127.0.0.1'],
    ['instances', 'Sessions per instance'],
    ['logs', 'Follow'],
    ['settings', 'Repository URL'],
  ].map(([tab, text]): Place => ({ name: `deployed environment, ${tab}`, path: () => deployed.page(`tab=${tab}`), text: text! })),
  { name: 'build log', path: () => deployed.page(`tab=deploys&deploy=${deployed.deploy}`), text: 'is ready' },
  { name: 'deploy', path: () => deployed.page('tab=deploys'), text: '127.0.0.1', open: click('Deploy') },
  { name: 'playground', path: () => '/environments/palestra/whodunit/play', text: 'whodunit' },
  { name: 'keys', path: () => '/keys', text: 'Create key' },
  ...['organisation', 'members', 'shares', 'browsers', 'audit', 'appearance', 'keyboard'].map((tab): Place => ({
    name: `settings, ${tab}`,
    path: () => `/settings?tab=${tab}`,
    text: 'Settings',
  })),
  { name: 'checker', path: () => '/check', text: 'How does Palestra read an upload?' },
  { name: 'no page', path: () => '/no/such/page', text: 'Page not found' },
];

/** Pages of readers without an account. */
const guestPlaces: { name: string; text: string; share?: () => NewShare }[] = [
  { name: 'sign-in', text: 'Sign in to Palestra' },
  { name: 'shared rollout', text: 'find who', share: () => ({ rollout: small.at(-1)!.id }) },
  { name: 'shared run', text: 'Is the reward moving?', share: () => ({ run: SMALL_RUN }) },
  { name: 'shared list', text: 'finished', share: () => ({ run: SMALL_RUN, q: 'stop:finished', with_rollouts: true }) },
  { name: 'shared comparison', text: 'accuse', share: () => ({ rollouts: small.slice(-2).map(({ id }) => id) }) },
];

async function enter(page: Page, { path, text, open }: Place): Promise<void> {
  await visit(page, palestra.url + path(), text);
  await open?.(page);
  await loaded(page);
}

/** Axe and the bounds of the page at these widths, without a reload. */
async function expectAccessible(page: Page, widths: readonly number[], { isDialog = false } = {}): Promise<void> {
  for (const width of widths) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme: 'light' });
    await page.locator('html[data-theme=light]').waitFor();
    await loaded(page);
    expect(await axeFaults(page), `${width} px, light`).toEqual([]);
    // A popover takes its place after its first frame.
    if (isDialog) await expect.poll(() => beyondWindow(page), { message: `${width} px, beyond the window` }).toEqual([]);
    else await expectSound(page);
    // The structure is the same in both themes; colours are not. The page follows the system until the reader chooses.
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.locator('html[data-theme=dark]').waitFor();
    await loaded(page);
    expect(await axeFaults(page, 'colours'), `${width} px, dark`).toEqual([]);
  }
}

/** Dialogs and menus that a reader does not see whole. Their content scrolls. */
const beyondWindow = (page: Page) =>
  page.locator('dialog[open], [role=dialog], [role=menu]').evaluateAll((all) =>
    all
      .map((one) => [one.getBoundingClientRect(), one.getAttribute('aria-label') ?? one.id] as const)
      .filter(([{ left, right, top, bottom }]) => left < 0 || top < 0 || right > innerWidth || bottom > innerHeight)
      .map(([, name]) => name),
  );

describe('no serious or critical fault of axe at four widths, light and dark, and nothing out of reach at 200 % zoom', () => {
  // One page for all: what is looked at is each place as a reader comes to it, not how it is loaded.
  let watched: Watched;
  beforeAll(async () => {
    watched = await openPage(browser, palestra, light);
    return watched.close;
  });

  test.each(places)('$name', async (place) => {
    const { page } = watched;
    await page.setViewportSize({ width: 1280, height: 800 });
    await enter(page, place);
    expect(await lowerCaseHeads(page)).toEqual([]);
    await expectAccessible(page, place.open ? [1280, 390] : [1280, 390, 1440, 1920], { isDialog: place.open !== undefined });
    if (place.open) return;
    // 1280 px at 200 %. Tables, which need two dimensions, scroll in boxes of their own.
    await page.setViewportSize({ width: 640, height: 400 });
    await loaded(page);
    await expectSound(page);
    expect(await page.getByRole('navigation', { name: 'Main' }).isVisible(), 'navigation').toBe(true);
  });

  test.each(guestPlaces)('$name', async ({ text, share }) => {
    const { page, close } = await openStranger(browser, { width: 1280, theme: 'light' });
    const url = share ? (await post<CreatedShare>('/v1/shares', share())).url : `${palestra.url}/alerts`;
    await visit(page, url, text);
    await expectAccessible(page, [1280, 390, 1440, 1920]);
    await close();
  });

  test('these are all pages', () => {
    const source = readFileSync(new URL('../../apps/dashboard/src/router.tsx', import.meta.url), 'utf8');
    const routes = [...source.matchAll(/\.\.\.(root|ofRun),\s*path: '([^']+)'/g)].map(([, parent, path]) =>
      parent === 'ofRun' ? `/$org/runs/$run${path === '/' ? '' : path}` : path!,
    );
    expect(routes.length).toBeGreaterThan(20);
    const redirects = ['/', '/runs', '/runs/$', '/$org/runs'];
    const visited = places.map(({ path }) => path().replace(/[?#].*/, ''));
    const patternOf = (route: string) => new RegExp(`^${route.replaceAll(/\$\w+/g, '[^/]+')}$`);
    expect(routes.filter((route) => !redirects.includes(route) && !visited.some((path) => patternOf(route).test(path)))).toEqual([]);
  });
});

test('nothing moves by itself for readers who asked for that', async () => {
  const { page, close } = await openPage(browser, palestra, light);
  /** Everything that has an animation or a transition of some length; a skeleton among them, which pages show only for a moment. */
  const moving = () =>
    page.evaluate(() => {
      const skeleton = document.createElement('div');
      skeleton.className = 'skeleton';
      document.querySelector('main')!.append(skeleton);
      const lasts = (durations: string) => durations.split(',').some((duration) => Number.parseFloat(duration) > 0);
      const found = [...document.querySelectorAll('*')].filter((element) => {
        const { animationName, animationDuration, transitionDuration } = getComputedStyle(element);
        return (animationName !== 'none' && lasts(animationDuration)) || lasts(transitionDuration);
      });
      skeleton.remove();
      return found.map(({ className }) => String(className));
    });
  for (const path of [ofRun(), ofRun('/rollouts'), ofRollout()]) {
    await page.emulateMedia({ reducedMotion: 'no-preference' });
    await page.goto(palestra.url + path());
    await page.getByRole('heading').first().waitFor();
    // Otherwise the test would see nothing move anywhere.
    expect(await moving()).toContain('skeleton');
    await page.emulateMedia({ reducedMotion: 'reduce' });
    expect(await moving()).toEqual([]);
  }
  await close();
});

test('every chart says what it shows, and shows its numbers as a table', async () => {
  const { page, close } = await openPage(browser, palestra, light);
  for (const path of [ofRun(), ofRun('/rollouts?find=lamp')]) {
    await page.goto(palestra.url + path());
    await page.locator('main canvas, main svg[role=img]').first().waitFor();
    await loaded(page);
    const charts = page.locator('section:has(canvas)');
    const unnamed = await page
      .locator('main canvas')
      .evaluateAll((all) => all.filter((one) => !one.closest('[role=img]')?.getAttribute('aria-label')?.trim()).length);
    expect(unnamed, `charts without a summary on ${path()}`).toBe(0);
    const without = await charts.evaluateAll((all) =>
      all
        .filter((one) => !one.querySelector('section:has(canvas)'))
        .filter((one) => ![...one.querySelectorAll('button')].some((button) => button.textContent?.startsWith('Table')))
        .map((one) => one.textContent?.slice(0, 60)),
    );
    expect(without, `charts without a table on ${path()}`).toEqual([]);
  }
  await page.goto(palestra.url + ofRun()());
  await page.locator('section canvas').first().waitFor();
  // Panels come one after the other.
  await expect.poll(() => page.locator('main [aria-busy=true]').count()).toBe(0);
  const buttons = page.getByRole('button', { name: /^Table of / });
  await expect.poll(() => buttons.count()).toBeGreaterThan(5);
  const titles = (await buttons.allTextContents()).map((text) => text.replace(/^Table of /, ''));
  for (const title of titles) {
    await page.getByRole('button', { name: `Table of ${title}`, exact: true }).click();
    const shown = page.getByRole('region', { name: `${title} as a table`, exact: true });
    await expect.poll(() => shown.getByRole('row').count(), { message: title }).toBeGreaterThan(1);
    expect(await shown.getByRole('columnheader').count(), title).toBeGreaterThan(1);
  }
  await close();
});
