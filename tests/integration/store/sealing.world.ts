import { randomUUID } from 'node:crypto';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import type { BlobStore } from '@palestra/blobs';
import { addJob } from '../../../apps/api/src/jobs/job-queue.sql.ts';
import type { Config } from '../../../apps/api/src/platform/config.ts';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { Metrics } from '../../../apps/api/src/platform/telemetry/metrics.ts';
import { SecretKeys } from '../../../apps/api/src/platform/secret-keys.ts';
import { openBlobStore } from '../../../apps/api/src/platform/storage.ts';
import { SealedEvents } from '../../../apps/api/src/store/ingest/sealed-events.service.ts';
import { CompactService } from '../../../apps/api/src/store/storage/compact.service.ts';
import { EraseService } from '../../../apps/api/src/store/storage/erase.service.ts';
import { ObjectGarbage } from '../../../apps/api/src/store/storage/garbage.service.ts';
import { PartitionService } from '../../../apps/api/src/store/storage/partition.service.ts';
import { RetentionService } from '../../../apps/api/src/store/storage/retention.service.ts';
import { SealService } from '../../../apps/api/src/store/storage/seal.service.ts';
import { TranscriptObjects } from '../../../apps/api/src/store/storage/transcript-objects.service.ts';
import { TranscriptReader } from '../../../apps/api/src/store/storage/transcript-reader.service.ts';
import { TranscriptWriter } from '../../../apps/api/src/store/storage/transcript-writer.service.ts';
import { holdLanes, releaseLanes } from '../../support/lanes.ts';
import { startServer, type TestServer } from '../../support/server.ts';

const endpoint = process.env['PALESTRA_TEST_S3_ENDPOINT'];
const credentials = {
  accessKeyId: process.env['PALESTRA_TEST_S3_ACCESS_KEY'] ?? '',
  secretAccessKey: process.env['PALESTRA_TEST_S3_SECRET_KEY'] ?? '',
};

/** Where objects are kept; with S3 where .ci/run started a real server. */
export const stores = ['files', ...(endpoint ? ['s3'] : [])] as const;

async function s3Settings(): Promise<Config['s3']> {
  const bucket = `sealing-${randomUUID()}`;
  const client = new S3Client({ endpoint: endpoint!, region: 'us-east-1', forcePathStyle: true, credentials });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  return { endpoint: endpoint!, bucket, region: 'us-east-1', ...credentials };
}

/** An API whose own sealing waits for an hour, and the store's services over the same database and objects, run by hand. */
export async function startStore(kind: string) {
  const server = await startServer({
    s3: kind === 's3' ? await s3Settings() : null,
    sealing: { finishedMs: 3_600_000, silentMs: 3_600_000 },
  });
  // Jobs that wait keep their time: tests run these themselves.
  for (const name of ['compact', 'garbage']) await postpone(server, name);
  const { blobs } = await openBlobStore(server.config, { url: 'http://127.0.0.1:1' }, new SecretKeys('not used: nothing here signs a URL'));
  const rest = restOf(server);
  return {
    server,
    blobs,
    ...events(server),
    ...reads(server),
    ...rest,
    services: (other: BlobStore = blobs, times?: Config['sealing']) => services(server, other, times),
    /** One pass over all rollouts, of which it leaves out none. */
    seal: (other: BlobStore = blobs) => rest.atRest(() => services(server, other).sealing.seal()),
  };
}
/** The service itself does not run this regular job for an hour. */
export async function postpone(server: TestServer, name: string): Promise<void> {
  const runAt = new Date(Date.now() + 3_600_000);
  const key = `every:${name}`;
  await addJob(server.database.pool, { name, payload: {}, key, runAt, maxAttempts: 1, serialKey: key, keepTime: false });
}

export type StoreWorld = Awaited<ReturnType<typeof startStore>>;

export function services(server: TestServer, blobs: BlobStore, sealing: Config['sealing'] = { finishedMs: 0, silentMs: 0 }) {
  const { database } = server;
  const config = { ...server.config, sealing };
  const logger = createLogger('silent');
  const objects = new TranscriptObjects(blobs);
  const garbage = new ObjectGarbage(database, blobs, logger);
  const sealedEvents = new SealedEvents(objects, logger);
  const eraser = new EraseService(database, garbage);
  const writer = new TranscriptWriter(database, blobs, objects);
  return {
    garbage,
    eraser,
    compactor: new CompactService(database, writer, garbage, blobs, logger),
    /** Of these event ids those that ingest finds in the transcript of a rollout. */
    async findSealed(id: string, eventIds: readonly string[]): Promise<string[]> {
      const { rows } = await database.pool.query('SELECT seq::text FROM rollout_heads WHERE id = $1', [id]);
      return [...(await sealedEvents.ids(database.pool, [rows[0].seq], new Set(eventIds))).get(rows[0].seq)!];
    },
    reader: new TranscriptReader(database, objects),
    sealing: new SealService(database, writer, garbage, new Metrics(), config, logger),
    retention: new RetentionService(database, eraser),
    partitions: new PartitionService(database, logger),
  };
}

function events(server: TestServer) {
  const start = (id: string, more: object = {}) => ({
    eventType: 'rollout',
    eventId: id,
    timestamp: Date.now(),
    runName: 'sealed',
    rolloutName: 'r',
    environment: 'acme/math',
    ...more,
  });
  const message = (rollout: string, index: number, more: object = {}) => ({
    eventType: 'message',
    eventId: randomUUID(),
    rolloutEventId: rollout,
    timestamp: 1_700_000_000_000 + index,
    index,
    type: index % 2 ? 'tool_result' : 'tool_call',
    name: 'tool',
    callId: `c${index}`,
    content: `message ${index} ü\n"quoted"`,
    isFinished: false,
    metadata: index % 3 ? {} : { at: index, list: [1, null] },
    ...more,
  });
  return {
    start,
    message,
    async post(sent: unknown[]): Promise<void> {
      const answer = await server.request('POST', '/v1/rollouts', { body: { events: sent } });
      if (answer.status !== 200) throw new Error(`POST /v1/rollouts: ${answer.status} ${JSON.stringify(answer.body)}`);
    },
    /** A rollout of so many messages; answers its id. */
    async upload(count: number, more: object = {}): Promise<string> {
      const id = randomUUID();
      await this.post([start(id, more)]);
      for (let at = 0; at < count; at += 1_000) {
        await this.post(Array.from({ length: Math.min(1_000, count - at) }, (_, offset) => message(id, at + offset)));
      }
      return id;
    },
  };
}

function restOf(server: TestServer) {
  const { pool } = server.database;
  const waiting = async (): Promise<number> =>
    (await pool.query('SELECT count(*)::int AS n FROM rollout_heads WHERE (dirty OR unsearched) AND run_seq IS NOT NULL')).rows[0].n;
  /** Until everything is derived and searchable, hence may be sealed. */
  async function settled(): Promise<void> {
    for (const deadline = Date.now() + 120_000; ;) {
      const count = await waiting();
      if (count === 0) return;
      if (Date.now() > deadline) throw new Error(`${count} rollouts are still not derived`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  return {
    settled,
    /** Settled, and while nothing works in the background: a seal leaves out rollouts that a round works on, for example its comparison with the ledger. */
    async atRest<T>(work: () => Promise<T>): Promise<T> {
      const client = await pool.connect();
      try {
        for (;;) {
          await settled();
          await holdLanes(client);
          try {
            if ((await waiting()) === 0) return await work();
          } finally {
            await releaseLanes(client);
          }
        }
      } finally {
        client.release();
      }
    },
  };
}

function reads(server: TestServer) {
  const { pool } = server.database;
  return {
    /** As if nothing had come for a minute: a rollout that is live falls quiet by itself after ten seconds. */
    async silence(ids: readonly string[]): Promise<void> {
      for (const table of ['rollout_heads', 'rollouts'])
        await pool.query(`UPDATE ${table} SET last_at = last_at - interval '1 minute' WHERE id = ANY($1::uuid[])`, [ids]);
    },
    async get(id: string): Promise<any> {
      return (await server.request('GET', `/v1/rollouts/${id}`)).body;
    },
    async page(id: string, from: number, limit: number): Promise<any> {
      return (await server.request('GET', `/v1/rollouts/${id}/messages?from=${from}&limit=${limit}`)).body;
    },
    async head(id: string): Promise<any> {
      const { rows } = await pool.query(
        'SELECT seq, day::text, org_id, messages, calls, bytes, output_chars, sealed_at, unsealed, run_seq FROM rollout_heads WHERE id = $1',
        [id],
      );
      return rows[0];
    },
    /** Key of the object with its transcript; undefined if it is not sealed. */
    async packOf(id: string): Promise<string | undefined> {
      const { rows } = await pool.query(
        `SELECT p.blob_key FROM rollout_heads h JOIN rollout_transcripts t ON t.rollout_seq = h.seq JOIN transcript_packs p ON p.id = t.pack
         WHERE h.id = $1`,
        [id],
      );
      return rows[0]?.blob_key;
    },
    async rowsOf(id: string): Promise<number> {
      const { rows } = await pool.query(
        'SELECT count(*)::int AS n FROM rollout_messages m JOIN rollout_heads h ON h.seq = m.rollout_seq WHERE h.id = $1',
        [id],
      );
      return rows[0].n;
    },
  };
}
