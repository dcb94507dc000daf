import type { Caller } from '@palestra/session';
import { expect, test } from 'vitest';
import type { Backlog } from './backlog.service.ts';
import { IngestService } from './ingest.service.ts';
import { OtlpService } from './otlp.service.ts';

/** The tested requests are answered before anything is stored: these are not used. */
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
  const held = ingest.admit('org', 256 * MEGABYTES, () => new Promise<void>((resolve) => (release = resolve)));
  await expect(traces()).rejects.toMatchObject({ code: 'ingest_overloaded' });
  await expect(batch()).rejects.toMatchObject({ code: 'ingest_overloaded' });
  release();
  await held;
  await expect(traces()).resolves.toEqual({});
  await expect(batch()).rejects.toMatchObject({ code: 'invalid_json' });
});

test('failed work releases its bytes, and a single body may exceed the limit', async () => {
  const ingest = new IngestService(unused, unused, unused, unused, unused, backlog);
  const failed = ingest.admit('org', 300 * MEGABYTES, () => Promise.reject(new Error('failed')));
  await expect(failed).rejects.toThrow('failed');
  await expect(ingest.admit('org', 256 * MEGABYTES, () => Promise.resolve('stored'))).resolves.toBe('stored');
});
