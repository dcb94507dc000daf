import { randomUUID } from 'node:crypto';
import { readBounded } from '@palestra/kit';
import { fail, type Finding, messageOf, ok } from './check.ts';

const DEADLINE_MS = 15_000;
/** Longer silence of the server ends an attempt. */
const SILENCE_MS = 4_000;

/** Writes, reads and deletes a small object with the settings of the service. */
export async function checkS3(env: NodeJS.ProcessEnv): Promise<Finding> {
  const { S3_BUCKET: bucket, S3_ENDPOINT: endpoint, S3_REGION: region, S3_ACCESS_KEY_ID: id, S3_SECRET_ACCESS_KEY: secret } = env;
  if (!bucket) {
    if (!endpoint) return ok('Not configured: objects are files in the data directory.');
    return fail('S3_ENDPOINT is set without S3_BUCKET, so the service uses files.', 'Set S3_BUCKET, or remove S3_ENDPOINT.');
  }
  const settings = {
    endpoint: endpoint || null,
    bucket,
    region: region || 'us-east-1',
    accessKeyId: id || null,
    secretAccessKey: secret || null,
  };
  // The SDK is large, and most machines have no S3.
  const { S3BlobStore } = await import('@palestra/blobs');
  const store = new S3BlobStore(settings, SILENCE_MS);
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const key = `palestra-doctor/${randomUUID()}`;
  const content = Buffer.from('A check of palestra doctor. You can delete this object.');
  let step = 'written';
  try {
    await store.put(key, content, { contentType: 'text/plain' }, signal);
    step = 'read';
    const { body } = await store.get(key, undefined, signal);
    if (!(await readBounded(body as AsyncIterable<Uint8Array>, content.length)).equals(content))
      throw new Error('the object has another content');
    step = 'deleted';
    await store.delete(key, signal);
  } catch (error) {
    if (step === 'read') await store.delete(key, signal).catch(() => {});
    const reason = signal.aborted ? `no answer within ${DEADLINE_MS / 1_000} s` : messageOf(error);
    return fail(`An object cannot be ${step} in the bucket ${bucket}: ${reason}`, adviceFor(error));
  }
  return ok(`An object was written, read and deleted in the bucket ${bucket}.`);
}

/** By the answer of S3, which is the cause of an error of the store. Texts are not compared: they name ports and keys. */
function adviceFor(error: unknown): string {
  const { name = '', $metadata } = (error as { cause?: { name?: string; $metadata?: { httpStatusCode?: number } } }).cause ?? {};
  if (/^(?:NoSuchBucket|NotFound)$/.test(name)) return 'Create the bucket, or correct S3_BUCKET.';
  if (/^(?:InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|CredentialsProviderError)$/.test(name))
    return 'Correct S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY.';
  if ($metadata?.httpStatusCode === 403) return 'Allow this key to put, get and delete objects of the bucket.';
  return 'Check that S3_ENDPOINT is reachable from this machine, and S3_REGION.';
}
