import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, type TestServer } from '../../support/server.ts';
import { seeded, upload } from './run-reads.world.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.close());
const get = async (url: string) => {
  const answer = await server.request('GET', url);
  if (answer.status !== 200) throw new Error(`${url}: ${JSON.stringify(answer.body)}`);
  return answer.body;
};

describe('pages of rollouts while rollouts arrive', () => {
  it.each(['sort=created_at&order=desc', 'sort=created_at&order=asc', 'sort=step&order=desc', 'sort=reward&order=asc'])(
    'sorted by %s contain each rollout once',
    async (sort) => {
      const run = `busy ${sort}`;
      const stored = seeded(run, { steps: 5, tasks: 4, n: 4 });
      await upload(server, run, stored);
      const url = `/v1/runs/${encodeURIComponent(run)}/rollouts?${sort}&limit=9`;
      const seen: string[] = [];
      let cursor: string | null = '';
      for (let page = 0; cursor !== null; page += 1) {
        const body: any = await get(`${url}${cursor && `&cursor=${cursor}`}`);
        seen.push(...body.rollouts.map(({ id }: { id: string }) => id));
        cursor = body.next;
        // Others arrive between the pages, before and after the cursor.
        if (page < 6) await upload(server, run, seeded(`${run}/${page}`, { steps: 3, tasks: 1, n: 2 }));
      }
      expect(new Set(seen).size).toBe(seen.length);
      const all = new Set(seen);
      expect(stored.filter(({ id }) => !all.has(id))).toEqual([]);
    },
  );
});
