import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import {
  CreateBucketCommand,
  GetObjectCommand,
  ListBucketsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type S3Server, startS3 } from '../support/s3-server.ts';

const SERVER = process.env['PALESTRA_TEST_S3_SERVER'];
const USER = { accessKeyId: 'service', secretAccessKey: 'secret-of-the-service' };

let s3: S3Server;
let folder: string;
let root: S3Client;
let user: S3Client;

/** Runs what the container `s3-setup` of docker-compose.yml runs, as compose would write it. */
async function setUp(): Promise<void> {
  const compose = parse(await readFile(path.resolve(import.meta.dirname, '../../docker-compose.yml'), 'utf8'), { merge: true }) as {
    services: Record<string, { entrypoint: string[] }>;
  };
  const [shell, ...args] = compose.services['s3-setup']!.entrypoint.map((argument) => argument.replaceAll('$$', '$'));
  await promisify(execFile)(shell!, args, {
    env: {
      PATH: `${folder}:${process.env['PATH']}`,
      ADMIN_ENDPOINT_URL: s3.env.S3_ENDPOINT,
      ADMIN_ACCESS_KEY_ID: s3.env.S3_ACCESS_KEY_ID,
      ADMIN_SECRET_ACCESS_KEY: s3.env.S3_SECRET_ACCESS_KEY,
      USER_ACCESS_KEY: USER.accessKeyId,
      USER_SECRET_KEY: USER.secretAccessKey,
    },
  });
}

beforeAll(async () => {
  // .ci/run builds the server; a proof that could not run is a failure there.
  if (SERVER === undefined && !process.env['CI']) return;
  s3 = await startS3();
  folder = await mkdtemp(path.join(tmpdir(), 'palestra-s3-tools-'));
  await symlink(SERVER!, path.join(folder, 'versitygw'));
  const client = (credentials: typeof USER) =>
    new S3Client({ endpoint: s3.env.S3_ENDPOINT, region: s3.env.S3_REGION, forcePathStyle: true, credentials });
  root = client({ accessKeyId: s3.env.S3_ACCESS_KEY_ID, secretAccessKey: s3.env.S3_SECRET_ACCESS_KEY });
  user = client(USER);
});
afterAll(async () => {
  root?.destroy();
  user?.destroy();
  await s3?.stop();
  if (folder) await rm(folder, { recursive: true, force: true });
});

test('M11: the key of the service in docker-compose.yml has access to one bucket, which may have objects of an older version', async ({
  skip,
}) => {
  if (s3 === undefined) skip('PALESTRA_TEST_S3_SERVER names no server');
  await root.send(new PutObjectCommand({ Bucket: s3.env.S3_BUCKET, Key: 'older/object', Body: 'older' }));
  await root.send(new CreateBucketCommand({ Bucket: 'foreign' }));
  await root.send(new PutObjectCommand({ Bucket: 'foreign', Key: 'object', Body: 'foreign' }));
  await setUp();
  // A second `docker compose up`.
  await setUp();

  const older = await user.send(new GetObjectCommand({ Bucket: s3.env.S3_BUCKET, Key: 'older/object' }));
  expect(await older.Body!.transformToString()).toBe('older');
  await user.send(new PutObjectCommand({ Bucket: s3.env.S3_BUCKET, Key: 'a/b', Body: 'new' }));
  expect((await user.send(new ListBucketsCommand({}))).Buckets!.map(({ Name }) => Name)).toEqual([s3.env.S3_BUCKET]);
  const denied = { name: 'AccessDenied' };
  await expect(user.send(new GetObjectCommand({ Bucket: 'foreign', Key: 'object' }))).rejects.toMatchObject(denied);
  await expect(user.send(new ListObjectsV2Command({ Bucket: 'foreign' }))).rejects.toMatchObject(denied);
  await expect(user.send(new PutObjectCommand({ Bucket: 'foreign', Key: 'object', Body: 'x' }))).rejects.toMatchObject(denied);
  await expect(user.send(new CreateBucketCommand({ Bucket: 'another' }))).rejects.toMatchObject(denied);
});
