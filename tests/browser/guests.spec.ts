import { randomUUID } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { axeFaults, expectSound, launch, loaded, openPage, openStranger, shoot, type View, visit } from './browser.ts';
import { createShare, messageEvents, type UploadedMessage, uploadEvents } from './upload.ts';

/** Shared pages as a reader without an account sees them: nothing needs an account, and every link stays within what is shared. */

let palestra: SharedPalestra;
let browser: Browser;
const light: View = { width: 1280, theme: 'light' };
const RUNS = ['guest policy', 'guest baseline'] as const;
/** Ids by run. */
const ids: Record<string, string[]> = {};
const [STEPS, TASKS, SAMPLES] = [5, 2, 2];

function eventsOf(runName: string, n: number): object[] {
  const [step, task, sample] = [Math.floor(n / (TASKS * SAMPLES)), Math.floor(n / SAMPLES) % TASKS, n % SAMPLES];
  const id = ids[runName]![n]!;
  const solved = (step + sample + task + (runName === RUNS[0] ? 1 : 0)) % 3 > 0;
  const messages: UploadedMessage[] = [
    { type: 'user_message', content: 'Who put out the lamp?' },
    { type: 'assistant_message', content: `The lamp went out at **nine**. See [the plan](https://example.com/plan) of step ${step}.` },
    { type: 'tool_call', name: 'search', callId: 'a', content: `{"room":"orangery ${sample}"}` },
    { type: 'tool_result', callId: 'a', content: '{"dust":true,"prints":[1,2,3]}' },
    { type: 'tool_call', name: 'accuse', callId: 'b', content: '{"suspect":"Everett Moss"}' },
    {
      type: 'tool_result',
      callId: 'b',
      content: solved ? 'Everett Moss lowers his eyes.' : 'The inspector shakes his head.',
      reward: Number(solved),
      isFinished: true,
    },
  ];
  const start = { eventType: 'rollout', eventId: id, timestamp: 1, runName, rolloutName: `lamp ${task}`, environment: 'palestra/whodunit' };
  const metadata = { sample_idx: sample, n_samples: SAMPLES, parent_rollout: ids[runName]!.at(-1) };
  return [{ ...start, split: 'train', rollout_info: { task_index: task, current_step: step }, metadata }, ...messageEvents(id, messages)];
}

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  for (const run of RUNS) {
    ids[run] = Array.from({ length: STEPS * TASKS * SAMPLES }, () => randomUUID());
    await uploadEvents(
      palestra,
      ids[run].flatMap((_, n) => eventsOf(run, n)),
    );
  }
});

/** What can be shared, and a text of its page. */
const KINDS: [name: string, body: () => object, text: string][] = [
  ['run', () => ({ run: RUNS[0] }), 'Why do rollouts stop?'],
  ['run-rollouts', () => ({ run: RUNS[0], with_rollouts: true }), 'Why do rollouts stop?'],
  ['list', () => ({ run: RUNS[0], q: 'step:1..3' }), 'match'],
  ['list-rollouts', () => ({ run: RUNS[0], q: 'step:1..3', with_rollouts: true }), 'match'],
  ['runs', () => ({ runs: [...RUNS] }), 'Reference'],
  ['two-rollouts', () => ({ rollouts: ids[RUNS[0]]!.slice(0, 2) }), 'rows are equal'],
  ['three-rollouts', () => ({ rollouts: ids[RUNS[0]]!.slice(0, 3) }), 'best'],
  ['rollout', () => ({ rollout: ids[RUNS[0]]![0] }), 'Who put out the lamp?'],
];

/** Buttons that write, or lead to other pages of the organisation. */
const OF_MEMBERS = /alert|annotat|delete|erase|export|note|review|revoke|save|select|share|tag|verdict/i;
/** What a page says when it requested more than the link shows. */
const NEEDS_ACCOUNT = /needs an account|sign in/i;

async function expectOpen(page: Page): Promise<void> {
  await loaded(page);
  expect(await page.locator('body').innerText()).not.toMatch(NEEDS_ACCOUNT);
  expect(await page.getByRole('navigation', { name: 'Main' }).count()).toBe(0);
  expect(await page.getByRole('button', { name: OF_MEMBERS }).allInnerTexts()).toEqual([]);
  // A guest opens runs by id, which says nothing to readers.
  expect(await page.getByRole('heading', { level: 1 }).innerText()).not.toMatch(/[\da-f]{8}-[\da-f]{4}/);
}

describe.each(KINDS)('%s', (name, body, text) => {
  test('is whole at 390 and 1280 px in both themes, without requests that are refused', async () => {
    const { url, path } = await createShare(palestra, body());
    for (const width of [390, 1280])
      for (const theme of ['light', 'dark'] as const) {
        const { page, complaints, refused, close } = await openStranger(browser, { width, theme });
        await page.goto(url, { waitUntil: 'domcontentloaded' });
        await page.waitForURL(palestra.url + path);
        await page.getByText(text).first().waitFor();
        await expectOpen(page);
        await shoot(page, `guest-${name}-${width}-${theme}`);
        await expectSound(page);
        expect(await axeFaults(page, theme === 'dark' ? 'colours' : undefined), `${width} ${theme}`).toEqual([]);
        // A control that can never be used is not shown.
        const dead = await page
          .locator('main :is(button, input, select):disabled, [aria-disabled=true]')
          .evaluateAll((all) => all.map((one) => one.outerHTML.slice(0, 160)));
        expect(dead, `${width} ${theme}`).toEqual([]);
        // Who it is, is asked once.
        expect(refused).toEqual(['401 /v1/me']);
        expect(complaints).toEqual([]);
        await close();
      }
  });

  test('has links to what the link shows only, and buttons that work', async () => {
    const { url } = await createShare(palestra, body());
    const { page, complaints, refused, close } = await openStranger(browser, light);
    await page.goto(url, { waitUntil: 'domcontentloaded' });
    await page.getByText(text).first().waitFor();
    await expectOpen(page);
    const address = page.url();
    const links = await page.locator('a[href]').evaluateAll((all) => all.map((one) => (one as HTMLAnchorElement).href));
    for (const link of new Set(links.map((one) => one.split('#')[0]!))) {
      if (!link.startsWith(palestra.url) || link.startsWith(`${palestra.url}/v1/`) || link === address.split('#')[0]) continue;
      await page.goto(link, { waitUntil: 'domcontentloaded' });
      await page.getByText('Shared by').waitFor();
      await expectOpen(page);
    }
    await page.goto(address, { waitUntil: 'domcontentloaded' });
    await page.getByText(text).first().waitFor();
    await loaded(page);
    for (const key of ['j', 'x', 'd', 'n', '?', 'Escape', 'h', 'g', 'b', '1', '/', 'Escape']) await page.keyboard.press(key);
    await expectOpen(page);
    const buttons = page.locator('button:visible');
    const count = Math.min(await buttons.count(), 40);
    for (let at = 0; at < count; at += 1) {
      if ((await buttons.count()) <= at) break;
      await buttons.nth(at).click();
      await expectOpen(page);
      await page.keyboard.press('Escape');
      if (page.url().split(/[?#]/)[0] !== address.split(/[?#]/)[0]) await page.goto(address, { waitUntil: 'domcontentloaded' });
      await page.getByText(text).first().waitFor();
    }
    expect(new Set(refused)).toEqual(new Set(['401 /v1/me']));
    expect(complaints).toEqual([]);
    await close();
  });
});

test('a shared rollout opens at its message, and nothing else opens, until the link is revoked', async () => {
  const [sibling, rollout] = ids[RUNS[1]]! as [string, string];
  const { url } = await createShare(palestra, { rollout, message: 2 });
  const guest = await openStranger(browser, light);
  const { page } = guest;
  await page.goto(url, { waitUntil: 'domcontentloaded' });
  await page.waitForURL(`${palestra.url}/rollout/${rollout}#m-2`);
  await page.getByText(`shared by ${palestra.namespace}`).waitFor();
  expect(await page.getByRole('tab', { name: 'Notes' }).count()).toBe(0);
  await visit(page, `${palestra.url}/rollout/${sibling}`, 'Sign in');
  await page.getByRole('link', { name: 'another page' }).click();
  await page.getByText('Who put out the lamp?').first().waitFor();
  for (const path of [
    '/keys',
    `/${palestra.namespace}/runs`,
    `/${palestra.namespace}/runs/${encodeURIComponent(RUNS[0])}`,
    ...['deploys', 'instances', 'logs', 'settings'].map((tab) => `/environments/palestra/whodunit?tab=${tab}`),
  ])
    await visit(page, palestra.url + path, 'Sign in');

  const owner = await openPage(browser, palestra, light);
  await visit(owner.page, `${palestra.url}/settings?tab=shares`, rollout);
  const revoke = owner.page.getByRole('button', { name: `Revoke the link to Rollout ${rollout}` });
  await revoke.click();
  await owner.page.getByRole('button', { name: 'Revoke link' }).click();
  await revoke.waitFor({ state: 'detached' });
  expect(owner.complaints).toEqual([]);
  await owner.close();
  await visit(page, `${palestra.url}/rollout/${rollout}`, 'it has expired or was revoked');
  await shoot(page, 'guest-gone-1280-light');
  await page.goto(url, { waitUntil: 'domcontentloaded' });
  await page.getByText('This link has ended').first().waitFor();
  expect(guest.complaints).toEqual([]);
  await guest.close();
});

describe('a selection', () => {
  const bar = (page: Page) => page.getByRole('region', { name: 'Selection' });
  const explorer = () => `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(RUNS[1])}/rollouts?q=step%3A2`;

  test('of rows is shared by a link that shows these rows, with an expiry, and is revoked where it was created', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, explorer(), 'of 20 rollouts');
    for (const row of [0, 1]) await page.locator('[data-row]').nth(row).getByRole('checkbox').check();
    await bar(page).getByRole('button', { name: 'Share the selection' }).click();
    await page.getByText('The link shows these rollouts.').waitFor();
    await page.getByText(/Everyone with the link can read the task, reward and stop reason of the rollouts/).waitFor();
    await page.getByLabel('Expires after').fill('3');
    await page.getByRole('button', { name: 'Create link' }).click();
    const created = page.getByRole('status').filter({ hasText: 'Valid until' });
    const link = await created.locator('code').innerText();
    const shares = (await (await fetch(`${palestra.url}/v1/shares`, { headers: { 'x-api-key': palestra.apiKey } })).json()) as {
      shares: { kind: string; q: string; expires_at: string; created_at: string }[];
    };
    const [share] = shares.shares;
    expect(share).toMatchObject({ kind: 'query', q: expect.stringMatching(/^id:[\w-]{36},[\w-]{36}$/) });
    expect(Date.parse(share!.expires_at) - Date.parse(share!.created_at)).toBeLessThanOrEqual(3 * 86_400_000 + 1_000);
    await shoot(page, 'share-selection-1280-light');
    expect(await axeFaults(page)).toEqual([]);

    const guest = await openStranger(browser, light);
    await guest.page.goto(link, { waitUntil: 'domcontentloaded' });
    await guest.page.getByText('2 rollouts').first().waitFor();
    await loaded(guest.page);
    expect(await guest.page.locator('[data-row]').count()).toBe(2);
    await page.getByRole('button', { name: /^Revoke the link of/ }).click();
    await expect.poll(() => page.getByRole('button', { name: /^Revoke the link of/ }).count()).toBe(0);
    await visit(guest.page, guest.page.url(), 'it has expired or was revoked');
    await guest.close();
    expect(complaints).toEqual([]);
    await close();
  });

  test('of everything that matches is shared as its query', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, explorer(), 'of 20 rollouts');
    await page.locator('[data-row]').first().getByRole('checkbox').check();
    await bar(page)
      .getByRole('button', { name: /^Select all 4/ })
      .click();
    await bar(page).getByRole('button', { name: 'Share the selection' }).click();
    await page.getByText('The link shows all rollouts that match the query, including later ones.').waitFor();
    await page.getByRole('checkbox', { name: /^Include the rollouts themselves/ }).check();
    await page.getByRole('button', { name: 'Create link' }).click();
    const link = await page.getByRole('status').filter({ hasText: 'Valid until' }).locator('code').innerText();
    const guest = await openStranger(browser, light);
    await guest.page.goto(link, { waitUntil: 'domcontentloaded' });
    await guest.page.getByText('4 rollouts').first().waitFor();
    await guest.page.locator('[data-row]').first().click();
    await guest.page.getByText('Who put out the lamp?').first().waitFor();
    await guest.close();
    expect(complaints).toEqual([]);
    await close();
  });

  test('that is compared, of two to four rollouts, is shared as a comparison', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, explorer(), 'of 20 rollouts');
    for (const row of [0, 1, 2]) await page.locator('[data-row]').nth(row).getByRole('checkbox').check();
    await bar(page).getByRole('link', { name: 'Compare 3' }).click();
    await page.getByRole('button', { name: 'Share this comparison' }).click();
    await page.getByRole('button', { name: 'Create link' }).click();
    const link = await page.getByRole('status').filter({ hasText: 'Valid until' }).locator('code').innerText();
    const guest = await openStranger(browser, light);
    await guest.page.goto(link, { waitUntil: 'domcontentloaded' });
    await guest.page.getByRole('table', { name: 'Samples side by side' }).getByText('Moss').first().waitFor();
    await expectOpen(guest.page);
    expect(guest.refused).toEqual(['401 /v1/me']);
    await guest.close();
    expect(complaints).toEqual([]);
    await close();
  });
});
