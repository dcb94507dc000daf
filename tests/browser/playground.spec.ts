import { once } from 'node:events';
import net from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serve } from '@palestra/environment-kit';
import type { SessionCallList, SessionView, SlotList } from '@palestra/protocol';
import { makeProblem } from '../../apps/environments/src/math/problems.ts';
import { addRemote, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { axeFaults, expectSound, expectSoundInEveryView, launch, openPage, shoot, soon, type View, visit } from './browser.ts';
import { apiOf, card, sidOf, studioOf } from './playground.environments.ts';

/** Plays tasks by hand, on bundled environments and on one with every kind of argument. */
let palestra: SharedPalestra;
let browser: Browser;
let running: Awaited<ReturnType<typeof serve>>;
let looks = 0;
/** Ends the running call of `look`; null: such calls end at once. */
let look: { end: () => void } | null = null;
const light: View = { width: 1280, theme: 'light' };

async function onLook(): Promise<string> {
  looks += 1;
  const held = look;
  if (held) await new Promise<void>((resolve) => (held.end = resolve));
  return `looked ${looks} times`;
}

const api = apiOf(() => palestra);
const ledger = async (sid: string) => (await api<SessionCallList>('GET', `/v1/sessions/${sid}/calls`)).calls;
/** Images of results are drawn from blob URLs of the page. */
const foreign = (complaints: string[]) => complaints.filter((one) => !one.startsWith(`request to blob:${palestra.url}/`));
const choose = (page: Page, name: string) => page.getByRole('radio', { name: new RegExp(`^${name}`) }).check();

beforeAll(async () => {
  running = await serve([studioOf(onLook)]);
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await addRemote(palestra, 'studio', running.url);
});
afterAll(async () => {
  await running?.close();
});

async function startStudio(page: Page, task = 0): Promise<string> {
  await visit(page, `${palestra.url}/environments/${palestra.namespace}/studio/play?task=${task}`, 'Start');
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.getByText('Paint the').waitFor();
  await page.getByRole('button', { name: /^Call / }).waitFor();
  return sidOf(page);
}

/** Fills in the form of `paint` with valid values. */
async function fillPaint(page: Page): Promise<void> {
  await choose(page, 'paint');
  await page.getByRole('textbox', { name: 'title' }).fill('Harbour');
  await page.getByRole('textbox', { name: 'width' }).fill('10');
  await page.getByRole('textbox', { name: 'height' }).fill('20');
  const strokes = page.getByRole('group', { name: 'strokes', exact: true });
  await strokes.getByRole('radio', { name: 'line' }).check();
  await strokes.getByRole('textbox', { name: 'length' }).fill('1.50');
  await page.getByRole('combobox', { name: 'colour' }).selectOption('blue');
  await page.getByRole('checkbox', { name: 'signed' }).check();
  await page.getByRole('checkbox', { name: 'note: null' }).check();
}

test('the keyboard alone can play an episode of a bundled environment to its end', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/environments/palestra/math/play?split=train&task=5`, '"seed": 5');
  await page.keyboard.press('Control+Enter');
  await page.getByText('Submit an integer').waitFor();
  await page.getByRole('textbox', { name: 'answer' }).and(page.locator(':focus')).waitFor();
  await page.keyboard.press('Control+Enter');
  await page.getByText('Fill this in').waitFor();
  await page.keyboard.type(String(makeProblem(5).answer));
  await page.keyboard.press('Control+Enter');
  await card(page, 1, 'submit').getByText('finished').waitFor();
  const sid = sidOf(page);
  await expect.poll(() => ledger(sid)).toMatchObject([{ tool: 'submit', reward: 1, finished: true, failure_class: 'ok' }]);
  const text = await card(page, 1, 'submit').innerText();
  expect(text).toContain('Correct.');
  expect(text).toContain('1.00');
  await page.getByRole('status', { name: 'Episode' }).getByText('Solved, 1.00').waitFor();
  await expect
    .poll(() => api<SessionView>('GET', `/v1/sessions/${sid}`))
    .toMatchObject({ total_reward: 1, state: 'finished', holder: { key: { name: 'tests' } } });
  await expectSound(page);
  expect(foreign(complaints)).toEqual([]);
  await close();
});

test('a form shows problems, focuses the first one, and sends the input', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  const sid = await startStudio(page);
  await choose(page, 'paint');
  await page.getByRole('textbox', { name: 'title' }).fill('ab');
  await page.getByRole('textbox', { name: 'width' }).fill('101');
  await page.getByRole('button', { name: 'Call paint' }).click();
  const form = page.getByRole('form', { name: 'Call paint' });
  for (const message of ['Enter at least 3 characters, not 2.', 'Must be at most 100.', 'Fill this in.', 'Choose one.']) {
    await form.getByText(message).first().waitFor();
  }
  await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('title');
  await shoot(page, 'playground-messages-1280-light');
  expect(await ledger(sid)).toEqual([]);
  await fillPaint(page);
  await page.keyboard.press('Control+Enter');
  await card(page, 1, 'paint').locator('img').waitFor();
  const [call] = await ledger(sid);
  expect(call!.input).toBe(
    '{"title":"Harbour","size":{"width":10,"height":20},"strokes":[{"kind":"line","length":1.50}],"colour":"blue","signed":true,"note":null}',
  );
  expect(call).toMatchObject({ ok: true, reward: 0.25 });
  await expect
    .poll(() =>
      card(page, 1, 'paint')
        .locator('img')
        .evaluate((image: HTMLImageElement) => image.naturalWidth),
    )
    .toBe(2);
  expect(foreign(complaints)).toEqual([]);
  await close();
});

test(
  'a reload in the middle goes on with the session; the kept rollout has the same calls and is verified',
  { timeout: 180_000 },
  async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    const sid = await startStudio(page, 1);
    await fillPaint(page);
    await page.keyboard.press('Control+Enter');
    await card(page, 1, 'paint').getByText('.250').waitFor();
    await page.reload();
    await page.getByText('Paint the orchard').waitFor();
    await card(page, 1, 'paint').getByText('.250').waitFor();
    expect(sidOf(page)).toBe(sid);
    await choose(page, 'spill');
    await page.getByRole('button', { name: 'Call spill' }).click();
    const spilled = card(page, 2, 'spill');
    await spilled.getByText('the pot of paint fell over').waitFor();
    expect(await spilled.innerText()).toContain('environment');
    expect(await spilled.innerText()).toContain('–');
    await choose(page, 'sign');
    await page.getByRole('button', { name: 'Call sign' }).click();
    await card(page, 3, 'sign').getByText('finished').waitFor();
    const calls = await ledger(sid);
    expect(calls.map(({ tool: name, reward, finished }) => [name, reward, finished])).toEqual([
      ['paint', 0.25, false],
      ['spill', null, false],
      ['sign', -0.125, true],
    ]);
    await page.getByRole('status', { name: 'Episode' }).getByText('Ended: finished, reward .125', { exact: true }).waitFor();
    expect(await card(page, 3, 'sign').innerText()).toContain('−.125');
    await page.getByRole('button', { name: 'Save as rollout' }).click();
    const dialog = page.getByRole('dialog', { name: 'Save as rollout' });
    expect(await dialog.getByRole('textbox').first().inputValue()).toBe('playground');
    await dialog.getByRole('textbox').last().fill('by hand');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'End session' }).click();
    await page.getByRole('button', { name: `End ${sid.slice(0, 8)} now` }).click();
    await page.getByRole('link', { name: 'Open rollout' }).click();
    await page.waitForURL(/\/rollout\//);
    await page.getByText('the pot of paint fell over').first().waitFor();
    const id = new URL(page.url()).pathname.split('/').at(-1)!;
    type Kept = {
      verified: string | null;
      messages: { type: string; name?: string; reward: number | null; metadata: { task_id: string; latency_ms?: number } }[];
    };
    const read = () => api<Kept>('GET', `/v1/rollouts/${id}`);
    await expect
      .poll(async () => (({ messages, verified }) => [messages.length >= 6, verified])(await read()), { timeout: 60_000, interval: 200 })
      .toEqual([true, 'verified']);
    const kept = await read();
    const asked = kept.messages.filter(({ type }) => type === 'tool_call');
    const answered = kept.messages.filter(({ type }) => type === 'tool_result');
    expect(asked.map(({ name, metadata }) => [name, metadata.task_id])).toEqual(calls.map((call) => [call.tool, call.task_id]));
    expect(answered.map(({ reward, metadata }) => [reward, metadata.latency_ms])).toEqual(
      calls.map((call) => [call.reward, call.latency_ms]),
    );
    // The page asks for the rollout until it is written.
    const isEarly = (complaint: string) => complaint.endsWith(`/v1/rollouts/${id}`) || complaint.includes('status of 404');
    expect(foreign(complaints).filter((complaint) => !isEarly(complaint))).toEqual([]);
    await close();
  },
);

test('an episode that ended says how and takes no call by accident; restart and next task open new sessions', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  const first = await startStudio(page, 1);
  await choose(page, 'sign');
  await page.getByRole('button', { name: 'Call sign' }).click();
  const end = page.getByRole('region', { name: 'End of the episode' });
  await end.getByRole('heading', { name: 'Ended: finished, reward −.125' }).waitFor();
  expect(await page.getByRole('form').count()).toBe(0);
  expect(await axeFaults(page)).toEqual([]);
  await shoot(page, 'playground-ended-1280-light');
  await end.getByRole('button', { name: 'Call a tool anyway' }).click();
  await page.getByRole('form', { name: /^Call / }).waitFor();
  await page.getByRole('button', { name: 'Restart' }).click();
  await page.waitForURL((url) => url.searchParams.get('sid') !== first);
  await page.getByText('Paint the orchard').waitFor();
  const second = sidOf(page);
  // The address is there before the page of the new session, whose prompt is the same.
  await page.getByRole('region', { name: 'Observer' }).getByText(second, { exact: true }).waitFor();
  await expect.poll(() => api<SessionView>('GET', `/v1/sessions/${first}`)).toMatchObject({ live: false });
  // An episode that runs is ended only after a second click.
  await choose(page, 'look');
  await page.getByRole('button', { name: 'Call look' }).click();
  await card(page, 1, 'look').getByText('looked').waitFor();
  await page.getByRole('button', { name: 'Next task' }).click();
  expect(await api<SessionView>('GET', `/v1/sessions/${second}`)).toMatchObject({ live: true });
  await page.getByRole('button', { name: 'End this episode and continue' }).click();
  await page.getByText('Paint the night').waitFor();
  expect(new URL(page.url()).searchParams.get('task')).toBe('2');
  await expect.poll(() => api<SessionView>('GET', `/v1/sessions/${second}`)).toMatchObject({ live: false });
  await expect.poll(() => page.getByRole('button', { name: 'Next task' }).isDisabled()).toBe(true);
  expect(foreign(complaints)).toEqual([]);
  await close();
});

test('a call whose connection breaks runs once and is shown as replayed', { timeout: 120_000 }, async () => {
  const sockets = new Set<net.Socket>();
  const proxy = net.createServer((client) => {
    const upstream = net.connect(palestra.port, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    }
    client.pipe(upstream).pipe(client);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const through = { ...palestra, url: `http://127.0.0.1:${(proxy.address() as net.AddressInfo).port}` };
  const { page, close } = await openPage(browser, through, light);
  const sid = (await api<SessionView>('POST', '/v1/sessions', { environment: `${palestra.namespace}/studio`, split: 'train', index: 0 }))
    .sid;
  await visit(page, `${through.url}/environments/${palestra.namespace}/studio/play?sid=${sid}`, 'Paint the harbour');
  await choose(page, 'look');
  const before = looks;
  const held = { end: () => {} };
  look = held;
  await page.getByRole('button', { name: 'Call look' }).click();
  await card(page, 1, 'look').getByText('running').waitFor();
  // The page can show it before the environment has it.
  await expect.poll(() => looks).toBe(before + 1);
  for (const socket of sockets) socket.resetAndDestroy();
  look = null;
  held.end();
  await card(page, 1, 'look').getByText('replayed').waitFor();
  await card(page, 1, 'look')
    .getByText(`looked ${before + 1} times`)
    .waitFor();
  expect(looks).toBe(before + 1);
  expect((await ledger(sid)).map(({ tool: name }) => name)).toEqual(['look']);
  // The same call once more is another call, not the repeat of the first.
  await page.getByRole('button', { name: 'Call look' }).click();
  await card(page, 2, 'look')
    .getByText(`looked ${before + 2} times`)
    .waitFor();
  await close();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => proxy.close(resolve));
});

test('slots, the session and its page show who plays; calls of other clients appear, or a pill counts them', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  const sid = await startStudio(page, 2);
  await page.goto(`${palestra.url}/environments/${palestra.namespace}/studio?tab=sessions`);
  const row = page.getByRole('row', { name: new RegExp(sid.slice(0, 8)) });
  await row.waitFor();
  expect(await row.innerText()).toContain('tests');
  expect(await row.innerText()).toContain('train 2');
  await soon(async () => {
    const { environments } = await api<SlotList>('GET', `/v1/slots?environment=${palestra.namespace}%2Fstudio`);
    expect(await page.getByText(/slots? taken/).innerText()).toContain(String(environments[0]!.used));
  });
  await row.getByRole('link').click();
  await page.getByText('No calls yet').waitFor();
  const call = (name: string) =>
    fetch(`${palestra.url}/call`, {
      method: 'POST',
      headers: { 'x-api-key': palestra.apiKey, 'x-session-id': sid, 'content-type': 'application/json' },
      body: JSON.stringify({ name, input: {} }),
    }).then((answer) => answer.text());
  await call('spill');
  await page.getByText('the pot of paint fell over').first().waitFor();
  await page.getByRole('button', { name: 'Following' }).click();
  await call('sign');
  await page.getByRole('button', { name: '1 new call' }).waitFor();
  expect(await page.getByRole('list', { name: 'Calls in order' }).getByRole('listitem').count()).toBe(1);
  await page.keyboard.press('t');
  await page.getByText('signed').first().waitFor();
  await page.getByRole('link', { name: 'Play', exact: true }).click();
  await card(page, 2, 'sign').getByText('finished').waitFor();
  expect(foreign(complaints)).toEqual([]);
  await close();
});

test('a played session is sound in every view', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await startStudio(page);
  await fillPaint(page);
  await page.keyboard.press('Control+Enter');
  await card(page, 1, 'paint').locator('img').waitFor();
  await choose(page, 'spill');
  await page.getByRole('button', { name: 'Call spill' }).click();
  await page.getByText('the pot of paint fell over').waitFor();
  await choose(page, 'paint');
  await expectSoundInEveryView(page, 'playground', { axe: true });
  expect(foreign(complaints)).toEqual([]);
  await close();
}, 300_000);
