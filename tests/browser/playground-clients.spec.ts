import { once } from 'node:events';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { serve } from '@palestra/environment-kit';
import type { SessionCallList, SessionList, SessionView } from '@palestra/protocol';
import { addRemote, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { launch, openPage, type View, visit } from './browser.ts';
import { apiOf, card, columns, fact, legal, sidOf } from './playground.environments.ts';

/** The playground beside other clients: sessions that they play at the same time, and how to begin with each. */
let palestra: SharedPalestra;
let browser: Browser;
let running: Awaited<ReturnType<typeof serve>>;
const light: View = { width: 1280, theme: 'light' };
const api = apiOf(() => palestra);
const ledger = async (sid: string) => (await api<SessionCallList>('GET', `/v1/sessions/${sid}/calls`)).calls;
const foreign = (complaints: string[]) => complaints.filter((one) => !one.startsWith(`request to blob:${palestra.url}/`));
const playOf = (name: string, search = '') => `${palestra.url}/environments/${name}/play${search}`;

/** The same environment through the OpenEnv or MCP server of this service. */
async function addSeen(name: string, kind: 'openenv' | 'mcp', of: string): Promise<void> {
  const source = { kind, url: `${palestra.url}/k/${palestra.apiKey}/${kind}/${of}` };
  await api('POST', '/v1/environments', { name, namespace: palestra.namespace, description: '', isPrivate: false, source });
}

beforeAll(async () => {
  running = await serve([columns]);
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await addRemote(palestra, 'columns', running.url);
  await addSeen('oe-columns', 'openenv', `${palestra.namespace}/columns`);
});

afterAll(async () => {
  await running?.close();
});

async function start(page: Page, name: string, search = '?task=0'): Promise<string> {
  await visit(page, playOf(name, search), 'Start');
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.getByRole('button', { name: /^(Call |Take this)/ }).waitFor();
  await page.waitForURL(/sid=/);
  return sidOf(page);
}
const own = (name: string) => `${palestra.namespace}/${name}`;

/** Allows the page to use the clipboard. Returns a function that reads it. */
async function clipboard(page: Page): Promise<() => Promise<string>> {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: palestra.url });
  return () => page.evaluate(() => navigator.clipboard.readText());
}

describe('sessions that other clients play', () => {
  const call = (sid: string, column: number) =>
    fetch(`${palestra.url}/call`, {
      method: 'POST',
      headers: { 'x-api-key': palestra.apiKey, 'x-session-id': sid, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'step', input: { column } }),
    }).then((answer) => answer.text());

  type Reply = { type: string; data: { done?: boolean; reward?: number | null; step_count?: number } };
  async function openEnvClient(name: string) {
    const socket = new WebSocket(`${palestra.url.replace('http', 'ws')}/openenv/${own(name)}/ws`, {
      headers: { authorization: `Bearer ${palestra.apiKey}` },
    });
    await once(socket, 'open');
    const ask = async (message: object): Promise<Reply> => {
      const reply = once(socket, 'message');
      socket.send(JSON.stringify(message));
      return JSON.parse(String((await reply)[0])) as Reply;
    };
    return { socket, ask };
  }

  test('calls of a trainer in the same session appear at once, up to its end', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    const opened = await api<SessionView>('POST', '/v1/sessions', { environment: own('columns'), split: 'train', index: 0 });
    await visit(page, playOf(own('columns'), `?sid=${opened.sid}`), 'Drop a stone');
    const loads: string[] = [];
    page.on('request', (request) => request.isNavigationRequest() && loads.push(request.url()));
    await call(opened.sid, 1);
    await card(page, 1).getByText('Stone 1.').waitFor();
    expect(await fact(page, 'played by').innerText()).not.toContain('in a browser');
    // Both play: the page goes on from what the other did.
    await legal(page).getByRole('button', { name: '0' }).click();
    await card(page, 2).getByText('Stone 2.').waitFor();
    await call(opened.sid, 1);
    await card(page, 3).getByText('Stone 3.').waitFor();
    await expect.poll(() => fact(page, 'steps').innerText()).toMatch(/^3\b/);
    await api('DELETE', `/v1/sessions/${opened.sid}`);
    await page.getByText('The session has ended').first().waitFor();
    await expect.poll(() => fact(page, 'state').innerText()).toContain('closed');
    expect(loads).toEqual([]);
    expect(foreign(complaints)).toEqual([]);
    await close();
  });

  test('calls of an OpenEnv client on its socket appear at once', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    const { socket, ask } = await openEnvClient('columns');
    expect(await ask({ type: 'reset', data: { split: 'train', index: 1 } })).toMatchObject({ type: 'observation' });
    const live = `/v1/sessions?state=live&environment=${encodeURIComponent(own('columns'))}`;
    const find = async () => {
      const { sessions } = await api<SessionList>('GET', live);
      const views = await Promise.all(sessions.map((session) => api<SessionView>('GET', `/v1/sessions/${session.sid}`)));
      return views.find(({ task }) => task?.['index'] === 1)?.sid;
    };
    await expect.poll(find).toBeDefined();
    const sid = await find();
    await page.goto(`${palestra.url}/sessions/${sid}`);
    await page.getByText('No calls yet').waitFor();
    await ask({ type: 'step', data: { column: 4 } });
    await page.getByRole('list', { name: 'Calls in order' }).getByRole('listitem').first().waitFor();
    await page.getByRole('link', { name: 'Play', exact: true }).click();
    await card(page, 1).getByText('Stone 1.').waitFor();
    for (const column of [4, 4]) await ask({ type: 'step', data: { column } });
    await card(page, 3).getByText('Stone 3.').waitFor();
    expect(await ask({ type: 'step', data: { column: 0 } })).toMatchObject({ data: { done: true, reward: 1 } });
    await card(page, 4).getByText('finished').waitFor();
    socket.close();
    expect(foreign(complaints)).toEqual([]);
    await close();
  });

  test('calls appear also for an OpenEnv server, whose client resets the episode', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    const { socket, ask } = await openEnvClient('oe-columns');
    await ask({ type: 'reset', data: { split: 'test', index: 0 } });
    await ask({ type: 'step', data: { column: 2 } });
    const live = `/v1/sessions?state=live&environment=${encodeURIComponent(own('oe-columns'))}`;
    const find = async () => {
      const { sessions } = await api<SessionList>('GET', live);
      const views = await Promise.all(sessions.map((session) => api<SessionView>('GET', `/v1/sessions/${session.sid}`)));
      return views.find(({ task }) => task?.['kind'] === 'none')?.sid;
    };
    await expect.poll(find).toBeDefined();
    const sid = await find();
    await page.goto(`${palestra.url}/sessions/${sid}`);
    await page.getByText('chosen by the OpenEnv client at reset').waitFor();
    await page.getByRole('link', { name: 'Play', exact: true }).click();
    await card(page, 1, 'reset').getByText('Drop a stone.').waitFor();
    await card(page, 2).getByText('Stone 1.').waitFor();
    // What was reset cannot be called again as a tool; what was done can.
    expect(await card(page, 1, 'reset').getByRole('button', { name: 'edit and call again' }).count()).toBe(0);
    await ask({ type: 'step', data: { column: 2 } });
    await card(page, 3).getByText('Stone 2.').waitFor();
    await legal(page).getByRole('button', { name: '3' }).click();
    await card(page, 4).getByText('Stone 3.').waitFor();
    expect(await ask({ type: 'state' })).toMatchObject({ type: 'state', data: { step_count: 3 } });
    socket.close();
    expect(foreign(complaints)).toEqual([]);
    await close();
  });

  test('every visitor has a separate session', async () => {
    const visitors = await Promise.all([openPage(browser, palestra, light), openPage(browser, palestra, light)]);
    const [one, other] = [visitors[0].page, visitors[1].page];
    const sids = [await start(one, own('columns')), await start(other, own('columns'))];
    expect(sids[0]).not.toBe(sids[1]);
    await legal(one).getByRole('button', { name: '1' }).click();
    await card(one, 1).getByText('Stone 1.').waitFor();
    // Not only not yet: the other plays on its own board, from its first stone.
    await legal(other).getByRole('button', { name: '3' }).click();
    await card(other, 1).getByText('Stone 1.').waitFor();
    expect(await card(other, 1).getByRole('group', { name: '3 rows of 4' }).innerText()).toContain('0 0 0 1');
    expect([(await ledger(sids[0]!)).length, (await ledger(sids[1]!)).length]).toEqual([1, 1]);
    for (const visitor of visitors) await visitor.close();
  });
});

describe('quick start', () => {
  test('has a program with working addresses for every client, and does not store the key', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, playOf('palestra/whodunit', '?split=test&task=7'), 'Quick start');
    const copied = await clipboard(page);
    const guide = page.getByRole('complementary', { name: 'Guide' });
    const text = async (client: string) => {
      await guide.getByRole('button', { name: client, exact: true }).click();
      return guide.getByLabel(`Quick start, ${client}`, { exact: true }).innerText();
    };
    await guide.getByLabel('API key for these snippets').fill(palestra.apiKey);
    for (const client of ['openreward', 'OpenEnv', 'OpenEnv tools', 'MCP', 'Text', 'TypeScript']) {
      const masked = await text(client);
      expect(masked, client).not.toContain(palestra.apiKey);
      expect(masked, client).toContain('or_••••••••');
    }
    expect(await text('openreward')).toMatch(/get\("palestra\/whodunit"\)[^]*session\(split="test", index=7\)/);
    await guide.getByRole('button', { name: 'Show key' }).click();
    const openEnv = await text('OpenEnv');
    const [, host] = palestra.url.split('://');
    const [userinfo, pathToken] = [...openEnv.matchAll(/url = "([^"]+)"/g)].map((match) => match[1]!);
    expect(userinfo).toBe(`http://key:${palestra.apiKey}@${host}/openenv/palestra/whodunit`);
    expect(pathToken).toBe(`${palestra.url}/k/${palestra.apiKey}/openenv/palestra/whodunit`);
    const { username, password } = new URL(userinfo!);
    const basic = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    const healthy = { status: 'healthy' };
    expect(await (await fetch(`${palestra.url}/openenv/palestra/whodunit/health`, { headers: { authorization: basic } })).json()).toEqual(
      healthy,
    );
    expect(await (await fetch(`${pathToken}/health`)).json()).toEqual(healthy);
    const tools = await text('OpenEnv tools');
    expect(tools).toContain(`MCPToolClient(base_url="${userinfo}")`);
    expect(tools).toMatch(/env\.reset\(split="test", index=7\)/);

    const { mcpServers } = JSON.parse(await text('MCP')) as {
      mcpServers: Record<string, { url: string; headers: Record<string, string> }>;
    };
    const server = mcpServers['whodunit']!;
    expect(server.url).toBe(`${palestra.url}/mcp/palestra/whodunit?split=test&index=7`);
    const initialize = {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
    };
    const answer = await fetch(server.url, {
      method: 'POST',
      headers: { ...server.headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify(initialize),
    });
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('serverInfo')]);
    expect(await text('Text')).toContain(`"${palestra.url}/v1/text-sessions" + path`);
    expect(await text('TypeScript')).toContain(`new PalestraClient({ url: "${palestra.url}", apiKey: "${palestra.apiKey}" })`);
    await guide.getByRole('button', { name: 'Hide key' }).click();
    await guide.getByRole('button', { name: 'Copy' }).click();
    await expect.poll(copied).toContain(palestra.apiKey);
    await guide.getByRole('button', { name: 'README' }).click();
    expect(await page.evaluate(() => Object.values(localStorage).join())).not.toContain(palestra.apiKey);
    expect(foreign(complaints)).toEqual([]);
    await close();
  });
});
