import net from 'node:net';
import type { Browser, Page, WebSocket as PageSocket } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { defineEnvironment, serve, tool, z } from '@palestra/environment-kit';
import type { SessionCallList, SessionView } from '@palestra/protocol';
import { addRemote, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { expectSound, launch, openPage, shoot, type View, visit } from './browser.ts';
import { apiOf, columns } from './playground.environments.ts';

/** The playground over the session's socket: live, cut, and blocked. */
let palestra: SharedPalestra;
let browser: Browser;
let running: Awaited<ReturnType<typeof serve>>;
let ran = 0;
const light: View = { width: 1280, theme: 'light' };

/** A tool whose duration the test controls. */
const gate = { open: () => {} };
const slow = defineEnvironment<object, object>({
  name: 'slow',
  splits: ['train'],
  tasks: () => [{}],
  create: () => ({}),
  prompt: () => 'Wait for it.',
  tools: {
    wait: tool({
      description: 'Waits.',
      input: z.object({ what: z.string() }),
      run: async ({ what }) => {
        ran += 1;
        await new Promise<void>((resolve) => (gate.open = resolve));
        return { content: `waited for ${what}`, reward: 0.5 };
      },
    }),
  },
});

beforeAll(async () => {
  running = await serve([columns, slow]);
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await addRemote(palestra, 'columns', running.url);
});
afterAll(async () => {
  await running?.close();
});

const api = apiOf(() => palestra);
const ledger = async (sid: string) => (await api<SessionCallList>('GET', `/v1/sessions/${sid}/calls`)).calls;
const callElsewhere = (sid: string, name: string, input: object) =>
  fetch(`${palestra.url}/call`, {
    method: 'POST',
    headers: { 'x-api-key': palestra.apiKey, 'x-session-id': sid, 'content-type': 'application/json' },
    body: JSON.stringify({ name, input }),
  }).then((answer) => answer.text());
const card = (page: Page, position: number, name: string) => page.getByRole('listitem', { name: `Call ${position}: ${name}` });
const cards = (page: Page) =>
  page
    .getByRole('list', { name: 'Calls in order' })
    .getByRole('listitem')
    .evaluateAll((all) => all.map((one) => one.getAttribute('data-task')));
const linked = (page: Page, state: 'live' | 'http') => page.locator(`[data-link="${state}"]`).waitFor();
const foreign = (complaints: string[]) => complaints.filter((one) => !one.startsWith(`request to blob:`));
const legal = (page: Page) => page.getByRole('group', { name: 'Legal actions' });

/** Records the messages of a page on sockets and its HTTP requests. */
function watch(page: Page) {
  const sockets: PageSocket[] = [];
  const sent: { type: string; id?: string }[] = [];
  const posts: string[] = [];
  const streams: string[] = [];
  page.on('websocket', (socket) => {
    sockets.push(socket);
    socket.on('framesent', ({ payload }) => sent.push(JSON.parse(String(payload)) as { type: string }));
  });
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (pathname === '/call') posts.push(request.headers()['idempotency-key'] ?? '');
    if (pathname.endsWith('/events')) streams.push(pathname);
  });
  return { sockets, calls: () => sent.filter(({ type }) => type === 'call'), posts, streams };
}

/** A proxy between browser and server that can cut or refuse connections. */
async function between() {
  const open = new Set<net.Socket>();
  const way = { blocked: false };
  const proxy = net.createServer((client) => {
    const upstream = net.connect(palestra.port, '127.0.0.1');
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => {}).on('close', () => open.delete(socket));
    }
    client.once('data', (head: Buffer) => {
      if (way.blocked && /^upgrade: websocket/im.test(head.toString('latin1'))) {
        upstream.destroy();
        return void client.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
      }
      upstream.write(head);
      client.pipe(upstream).pipe(client);
    });
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port } = proxy.address() as net.AddressInfo;
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    proxy.close();
  });
  const cut = () => open.forEach((socket) => socket.resetAndDestroy());
  return { way, cut, through: { ...palestra, url: `http://127.0.0.1:${port}` } };
}

const open = async (environment: string, variant?: string): Promise<string> => {
  const named = environment.includes('/') ? environment : `${palestra.namespace}/${environment}`;
  const body = { environment: named, split: 'train', index: 0, ...(variant && { variant }) };
  return (await api<SessionView>('POST', '/v1/sessions', body)).sid;
};
const playOf = (url: string, environment: string, sid: string) =>
  `${url}/environments/${environment.includes('/') ? environment : `${palestra.namespace}/${environment}`}/play?sid=${sid}`;

describe('live', () => {
  test('calls of the page and of other clients use one socket and no other request', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    const seen = watch(page);
    const sid = await open('palestra/ctf');
    await visit(page, playOf(palestra.url, 'palestra/ctf', sid), 'Play');
    await linked(page, 'live');
    await page.getByRole('radio', { name: /^ls/ }).check();
    await page.getByRole('button', { name: 'Call ls' }).click();
    await card(page, 1, 'ls').getByRole('button', { name: 'Copy call 1 as JSON' }).waitFor();
    await callElsewhere(sid, 'ls', {});
    await card(page, 2, 'ls').getByRole('button', { name: 'Copy call 2 as JSON' }).waitFor();
    expect(await cards(page)).toEqual((await ledger(sid)).map(({ task_id: id }) => id));
    expect(seen.sockets.map((socket) => new URL(socket.url()).pathname)).toEqual([`/v1/sessions/${sid}/socket`]);
    expect(seen.calls()).toHaveLength(1);
    expect([seen.posts, seen.streams]).toEqual([[], []]);
    await api('DELETE', `/v1/sessions/${sid}`);
    await page.getByText('The session has ended').first().waitFor();
    await expect.poll(() => seen.sockets[0]!.isClosed()).toBe(true);
    expect(await page.locator('[data-link]').count()).toBe(0);
    expect(foreign(complaints)).toEqual([]);
    await close();
  });

  test('actions use the socket too; two pages of a session see each other’s calls', async () => {
    const one = await openPage(browser, palestra, light);
    const other = await openPage(browser, palestra, { width: 1280, theme: 'dark' });
    const seen = watch(one.page);
    const sid = await open('columns', 'columns');
    for (const { page } of [one, other]) {
      await visit(page, playOf(palestra.url, 'columns', sid), 'Drop a stone');
      await linked(page, 'live');
    }
    await legal(one.page).getByRole('button', { name: '2' }).click();
    await card(other.page, 1, 'step').getByText('Stone 1.').waitFor();
    await legal(other.page).getByRole('button', { name: '2' }).click();
    await card(one.page, 2, 'step').getByText('Stone 2.').waitFor();
    await legal(one.page).getByRole('button', { name: '2' }).click();
    for (const { page } of [one, other]) {
      await card(page, 3, 'step').getByText('Stone 3.').waitFor();
      await expect.poll(() => legal(page).getByRole('button').allInnerTexts()).toEqual(['0', '1', '3']);
      expect(await cards(page)).toEqual((await ledger(sid)).map(({ task_id: id }) => id));
      await expectSound(page);
    }
    expect([seen.calls().length, seen.posts, seen.streams]).toEqual([2, [], []]);
    await shoot(one.page, 'playground-live-1280-light');
    await shoot(other.page, 'playground-live-1280-dark');
    expect([...foreign(one.complaints), ...foreign(other.complaints)]).toEqual([]);
    await one.close();
    await other.close();
  });
});

test('after a cut the socket opens again: the call ran once, and calls of other clients are shown once', async () => {
  const { way, cut, through } = await between();
  const { page, close } = await openPage(browser, through, light);
  const seen = watch(page);
  const sid = await open('columns', 'slow');
  await visit(page, playOf(through.url, 'columns', sid), 'Wait for it');
  await linked(page, 'live');
  const before = ran;
  gate.open = () => {};
  await page.getByRole('textbox', { name: 'what' }).fill('Godot');
  await page.keyboard.press('Control+Enter');
  await card(page, 1, 'wait').getByText('running').waitFor();
  // The page can show it before the environment has it.
  await expect.poll(() => ran).toBe(before + 1);
  const release = gate.open;
  way.blocked = true;
  cut();
  // How long it tries before it goes on over HTTP is a matter of its backoff.
  await page.locator('[data-link]:not([data-link="live"])').waitFor();
  release();
  gate.open = () => {};
  const other = callElsewhere(sid, 'wait', { what: 'the other' });
  await expect.poll(() => gate.open.toString()).not.toBe('() => {}');
  way.blocked = false;
  await linked(page, 'live');
  await card(page, 1, 'wait').getByText('waited for Godot').waitFor();
  await card(page, 1, 'wait').getByText('replayed').waitFor();
  gate.open();
  await other;
  await card(page, 2, 'wait').getByText('waited for the other').waitFor();
  expect(ran).toBe(before + 2);
  expect(await cards(page)).toEqual((await ledger(sid)).map(({ task_id: id }) => id));
  const ids = seen.calls().map(({ id }) => id);
  expect([ids.length >= 1, new Set([...ids, ...seen.posts]).size]).toEqual([true, 1]);
  expect(seen.sockets.at(-1)!.url()).toMatch(/\?after=\d+\.\d+$/);
  await close();
});

test('without a socket the page uses HTTP and the event stream, and the socket when it connects', async () => {
  const { way, cut, through } = await between();
  way.blocked = true;
  const { page, complaints, close } = await openPage(browser, through, light);
  const seen = watch(page);
  const sid = await open('columns', 'columns');
  await visit(page, playOf(through.url, 'columns', sid), 'Drop a stone');
  await linked(page, 'http');
  await legal(page).getByRole('button', { name: '0' }).click();
  await card(page, 1, 'step').getByText('Stone 1.').waitFor();
  await callElsewhere(sid, 'step', { column: 1 });
  await card(page, 2, 'step').getByText('Stone 2.').waitFor();
  expect([seen.calls().length, seen.posts.length, seen.streams.length]).toEqual([0, 1, 1]);
  await expectSound(page);
  await shoot(page, 'playground-http-1280-light');
  way.blocked = false;
  await linked(page, 'live');
  await legal(page).getByRole('button', { name: '3' }).click();
  await card(page, 3, 'step').getByText('Stone 3.').waitFor();
  expect([seen.calls().length, seen.posts.length]).toEqual([1, 1]);
  expect(await cards(page)).toEqual((await ledger(sid)).map(({ task_id: id }) => id));
  // A browser writes of each socket that was refused; of nothing else.
  expect(foreign(complaints).filter((one) => !/^WebSocket connection to .* failed/.test(one))).toEqual([]);
  cut();
  await close();
});
