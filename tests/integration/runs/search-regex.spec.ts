import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createCaller } from '../../support/callers.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** A search by regex finds what a scan of all texts finds, also where the index of words narrows it first. */

const RUN = 'regexes';
const ROLLOUTS = 240;
/** Texts in which a literal stands within words, across words and beside signs. */
const TEXTS = [
  'Traceback (most recent call last): ValueError',
  'xTRACEBACKx and untracebackable',
  'file /usr/lib/python3/site-packages/numpy.so',
  'mail a.person@example.org or https://example.org/path?query=value',
  '12abc34 1e5def 0xdeadbeef -3.5e10units v1.2.3rc4',
  '<tag attribute="value">body &amp; soul</tag>',
  'naïve façade größenwahn ÉCOLE école',
  'kilo kisses Kelvin ſharp ISTANBUL istanbul',
  'snake_case camelCase kebab-case-word don\u2019t',
  'new\nline\ttab traceback\u0001control',
];
let server: TestServer;
const texts = new Map<string, string>();

async function found(q: string): Promise<{ keys: string[]; progress: { rollouts: number; of: number }[] }> {
  const keys: string[] = [];
  const progress: { rollouts: number; of: number }[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const query = new URLSearchParams({ q, mode: 'regex', limit: '100', ...(cursor ? { cursor } : {}) });
    const { status, body }: any = await server.request('GET', `/v1/runs/${RUN}/search?${query}`);
    expect({ status, q, body: status === 200 ? null : body }).toEqual({ status: 200, q, body: null });
    keys.push(...body.hits.map((hit: any) => `${hit.rollout} ${hit.index}`));
    progress.push(body.progress);
    cursor = body.next;
  }
  return { keys, progress };
}

beforeAll(async () => {
  server = await sharedServer();
  for (let at = 0; at < ROLLOUTS; at += 60) {
    const events = Array.from({ length: 60 }, (_none, n) => {
      const id = randomUUID();
      const start = {
        eventType: 'rollout',
        eventId: id,
        timestamp: 1,
        runName: RUN,
        environment: 'acme/regex',
        split: 'train',
        metadata: {},
      };
      const messages = [0, 1].map((index) => {
        const content = index === 0 ? `rollout no${at + n}` : `${TEXTS[(at + n) % TEXTS.length]!}${at + n === 77 ? ' the needle' : ''}`;
        texts.set(`${id} ${index}`, content);
        return {
          eventType: 'message',
          eventId: randomUUID(),
          rolloutEventId: id,
          timestamp: 2,
          index,
          type: 'assistant_message',
          content,
          isFinished: false,
          metadata: {},
        };
      });
      return [start, ...messages];
    });
    const { status } = await server.request('POST', '/v1/rollouts', { body: { events: events.flat() } });
    if (status !== 200) throw new Error(`the upload was refused: ${status}`);
  }
}, 60_000);
afterAll(() => server.close());

const PATTERNS: [pattern: string, flags: string][] = [
  ['Traceback', ''],
  ['(?i)traceback', 'i'],
  ['raceba', ''],
  ['most recent call', ''],
  ['ecent c', ''],
  ['site-packages/num', ''],
  ['person@exam', ''],
  ['query=val', ''],
  ['abc\\d+', ''],
  ['5def', ''],
  ['xdeadbee', ''],
  ['e10unit', ''],
  ['3rc4', ''],
  ['attribute="val', ''],
  ['&amp; soul', ''],
  ['façade', ''],
  ['gr\\S+wahn', ''],
  ['COLE', ''],
  ['(?i)kelvin', 'i'],
  ['ISTANBUL', ''],
  ['(?i)istanbul', 'i'],
  ['snake_ca', ''],
  ['kebab.case', ''],
  ['melC', ''],
  ['line\\ttab', ''],
  ['back.control', ''],
  ['needle|soul', ''],
  ['the needle', ''],
  ['absentword', ''],
  ['no1?7$', ''],
];

describe('search by regex equals a scan', () => {
  const expectAsScanned = async (patterns = PATTERNS) => {
    for (const [pattern, flags] of patterns) {
      const regex = new RegExp(pattern.replace('(?i)', ''), flags);
      const expected = [...texts].filter(([, text]) => regex.test(text)).map(([key]) => key);
      const { keys } = await found(pattern);
      expect({ pattern, keys: keys.toSorted() }).toEqual({ pattern, keys: expected.toSorted() });
    }
  };

  it('whether the index has the rollouts or not', async () => {
    await expectAsScanned(PATTERNS.slice(0, 5));
    const pending = async () => expect((await server.request('GET', `/v1/runs/${RUN}/search?q=soul`)).body.pending).toBe(false);
    await vi.waitFor(pending, { timeout: 20_000, interval: 100 });
    await expectAsScanned();
  }, 120_000);

  it('and reports how many rollouts it has looked at, page by page', async () => {
    const { keys, progress } = await found('rollout no');
    expect(keys).toHaveLength(ROLLOUTS);
    expect(progress).toEqual([100, 200, ROLLOUTS].map((rollouts) => ({ rollouts, of: ROLLOUTS })));
  });
});

it('an organisation without runs has no hits, groups or samples', async () => {
  const { headers } = await createCaller(server, 'without-runs');
  for (const mode of ['text', 'regex'])
    for (const within of ['', 'words', 'in:assistant words', 'in:assistant /regex/']) {
      const query = `q=fox&mode=${mode}&within=${encodeURIComponent(within)}`;
      expect([mode, within, await server.request('GET', `/v1/search?${query}`, { headers })]).toMatchObject([
        mode,
        within,
        { status: within.includes('/') && mode === 'text' ? 422 : 200 },
      ]);
    }
  const queue = { name: 'empty', query: 'in:assistant words', sample: 5 };
  expect(await server.request('POST', '/v1/review-queues', { headers, body: queue })).toMatchObject({
    status: 422,
    body: { code: 'invalid_query' },
  });
});
