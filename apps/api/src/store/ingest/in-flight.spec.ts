import type { Caller } from '@palestra/session';
import { expect, test } from 'vitest';
import type { Backlog } from './backlog.service.ts';
import { IngestService } from './ingest.service.ts';
import { OtlpService } from './otlp.service.ts';

/** What is asked here is answered before anything is stored: nothing of these is used. */
const unused = undefined as never;
const backlog = { waitForRoom: async () => {} } as unknown as Backlog;
const MEGABYTES = 1024 * 1024;
const caller = { orgId: 'o' } as Caller;

test('bodies of uploads and of traces are counted together, and a full process refuses both until some are done', async () => {
  const ingest = new IngestService(unused, unused, unused, unused, unused, backlog);
  const otlp = new OtlpService(unused, ingest, unused);
  const traces = () => otlp.store(caller, Buffer.from('{}'), false);
  const batch = () => ingest.ingest(caller, Buffer.from('no JSON'));
  let release = () => {};
  const held = ingest.admit(256 * MEGABYTES, () => new Promise<void>((resolve) => (release = resolve)));
  await expect(traces()).rejects.toMatchObject({ code: 'ingest_overloaded' });
  await expect(batch()).rejects.toMatchObject({ code: 'ingest_overloaded' });
  release();
  await held;
  await expect(traces()).resolves.toEqual({});
  await expect(batch()).rejects.toMatchObject({ code: 'invalid_json' });
});

test('bytes of work that failed are given back, and one body alone may be larger than all', async () => {
  const ingest = new IngestService(unused, unused, unused, unused, unused, backlog);
  const failed = ingest.admit(300 * MEGABYTES, () => Promise.reject(new Error('failed')));
  await expect(failed).rejects.toThrow('failed');
  await expect(ingest.admit(256 * MEGABYTES, () => Promise.resolve('stored'))).resolves.toBe('stored');
});
