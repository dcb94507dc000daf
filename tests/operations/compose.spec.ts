import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { freePort } from '@palestra/hosting';
import { uploadRollout } from '../browser/upload.ts';
import { signIn } from '../support/organisation.ts';
import { compose, type Compose } from './compose.ts';
// Declares the images of images.global.ts.
import type {} from './images.global.ts';

/**
 * `docker compose up` with docker-compose.yml as it is, by podman-compose and Podman. The images are of this machine's files (images.ts says
 * what stands in for what), because no registry is needed to run the tests.
 */
const mark = `c${process.pid}`;
const random = () => randomBytes(24).toString('hex');
const apiKey = `or_${random()}`;
let project: Compose;
let url: string;

beforeAll(async () => {
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  project = await compose(`palestra-${mark}`, inject('images'), port, {
    POSTGRES_PASSWORD: random(),
    DATABASE_PASSWORD: random(),
    S3_ROOT_ACCESS_KEY_ID: random(),
    S3_ROOT_SECRET_ACCESS_KEY: random(),
    S3_ACCESS_KEY_ID: random(),
    S3_SECRET_ACCESS_KEY: random(),
    PALESTRA_API_KEY: apiKey,
  });
  await project.call('up', '-d');
  await project.healthy('palestra');
  await project.healthy('worker');
});
afterAll(async () => {
  await project?.call('down', '-v', '-t', '5').catch(() => {});
  await project?.remove();
});

const PLAY = `
from openreward import OpenReward
environment = OpenReward().environments.get("palestra/echo")
with environment.session(split="train", index=3) as session:
    print(session.call_tool("echo", {"text": "through the containers"}).blocks[0].text)
`;
/** The official client plays an episode. */
const play = async (): Promise<string> => {
  const python = process.env['PALESTRA_PYTHON_V167'];
  if (!python) throw new Error('PALESTRA_PYTHON_V167 must name a Python with the official client');
  const addresses = { OPENREWARD_URL: url, OPENREWARD_API_URL: url, OPENREWARD_SESSION_URL: url };
  const env = { ...process.env, ...addresses, OPENREWARD_API_KEY: apiKey, OPENREWARD_DISABLE_UPDATE_CHECK: '1' };
  return (await promisify(execFile)(python, ['-c', PLAY], { env, timeout: 120_000 })).stdout.trim();
};
const get = async (route: string): Promise<any> => {
  const answer = await fetch(url + route, { headers: { 'x-api-key': apiKey } });
  if (!answer.ok) throw new Error(`GET ${route}: ${answer.status} ${await answer.text()}`);
  return answer.json();
};
const texts = async (rollout: string): Promise<string[]> =>
  (await get(`/v1/rollouts/${rollout}`)).messages.map(({ content }: { content: string }) => content);
const upload = (runName: string, content: string): Promise<string> =>
  uploadRollout(
    { url, apiKey },
    { runName, environment: 'palestra/echo', messages: [{ type: 'assistant_message', content, reward: 1, isFinished: true }] },
  );
/** The worker derives figures, and writes exports as objects. */
const exported = async (run: string): Promise<string> => {
  const answer = await fetch(`${url}/v1/exports`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ run, format: 'jsonl' }),
  });
  const { id } = (await answer.json()) as { id: string };
  await expect.poll(async () => (await get(`/v1/exports/${id}`)).state).toBe('complete');
  const { files } = (await get(`/v1/exports/${id}`)) as { files: { name: string; url: string }[] };
  const { pathname, search } = new URL(files.find(({ name }) => name.endsWith('.jsonl'))!.url);
  const file = await fetch(url + pathname + search);
  if (!file.ok) throw new Error(`GET ${pathname}: ${file.status}`);
  return file.text();
};
const states = async (): Promise<string[]> =>
  (await project.engine('ps', '-a', '--filter', `label=io.podman.compose.project=palestra-${mark}`, '--format', '{{.Names}} {{.Status}}'))
    .split('\n')
    .map((line) => line.replace(/^palestra-\w+_([\w-]+)_1 (\w+(?: \(0\))?).*$/, '$1 $2'))
    .toSorted();

test('one command starts the service, its worker, the database and the objects', async () => {
  expect(await states()).toEqual(['migrate Exited (0)', 'palestra Up', 'postgres Up', 's3 Up', 's3-setup Exited (0)', 'worker Up']);
  // As README.md and the file say.
  const signInText = await project.call('exec', '-T', 'palestra', 'cat', '/data/sign-in.txt');
  const [link] = /http:\/\/127\.0\.0\.1:8080\/\S+/.exec(signInText)!;
  expect(await signIn(link.replace('http://127.0.0.1:8080', url))).toMatch(/^palestra_session=./);
});

let first: string;
test('the official client plays, and an upload becomes figures and an export', async () => {
  expect(await play()).toBe('through the containers');
  first = await upload('containers', 'before the crash');
  await expect.poll(async () => (await get('/v1/runs/containers')).num_rollouts).toBe(1);
  expect(await exported('containers')).toContain('before the crash');
});

test.each(['palestra', 'worker'])('after kill -9 of %s it is started again, and nothing is lost', async (service) => {
  const before = await project.pid(service);
  process.kill(before, 'SIGKILL');
  await expect.poll(() => project.pid(service), { interval: 200 }).not.toBeOneOf([before, 0]);
  await project.healthy(service);
  expect(await texts(first)).toEqual(['before the crash']);
  expect(await play()).toBe('through the containers');
  await upload(`after ${service}`, 'after the crash');
  expect(await exported(`after ${service}`)).toContain('after the crash');
});

test('`down -v` leaves nothing', async () => {
  expect(await project.leftovers()).not.toBe('');
  await project.call('down', '-v', '-t', '20');
  expect(await project.leftovers()).toBe('');
});
