import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { PalestraClient } from '@palestra/client';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { startCluster, type Cluster } from '../k8s/support/cluster.ts';
import { startRoundRobinProxy, type RoundRobinProxy } from '../support/round-robin-proxy.ts';
import { engine, root } from './images.ts';
// Declares the images of images.global.ts.
import type {} from './images.global.ts';
import { writeSchemas } from './kubernetes-schemas.ts';

/**
 * deploy/helm/palestra on a real control plane, whose pods run in Podman. PostgreSQL and S3 are outside of the cluster, by URL. A proxy of
 * the test, which follows the EndpointSlices of the Service, stands in for an ingress controller: the cluster has no network of Services.
 */
const chart = path.join(root, 'deploy/helm/palestra');
const fullValues = path.join(import.meta.dirname, 'full-values.yaml');
const LEAST = ['--set', 'existingSecret=palestra,publicUrl=https://palestra.example,s3.bucket=palestra'];
const KUBERNETES = '1.33.0';
const run = promisify(execFile);
const random = () => randomBytes(16).toString('hex');
const apiKey = `or_${random()}${random()}`;
const mark = `chart${process.pid}`;
let folder: string;
let cluster: Cluster;
let namespace: string;

function program(variable: string): string {
  const value = process.env[variable];
  if (!value) throw new Error(`${variable} is not set; .ci/run sets it`);
  return value;
}
const helm = async (...args: string[]): Promise<string> => {
  const env = {
    ...process.env,
    KUBECONFIG: cluster.plane.kubeconfig,
    HELM_CACHE_HOME: folder,
    HELM_CONFIG_HOME: folder,
    HELM_DATA_HOME: folder,
  };
  return (await run(program('PALESTRA_TEST_HELM'), args, { env, maxBuffer: 2 ** 26 })).stdout;
};

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'palestra-chart-'));
  cluster = await startCluster();
  namespace = await cluster.plane.namespace('chart');
});
afterAll(async () => {
  await cluster?.close();
  await rm(folder, { recursive: true, force: true });
});

describe.each([
  ['the values that an installation needs', LEAST],
  ['all values', ['-f', fullValues]],
])('with %s', (_name, values) => {
  test('helm lint finds nothing', async () => {
    expect(await helm('lint', '--strict', '--kube-version', KUBERNETES, chart, ...values)).toContain('0 chart(s) failed');
  });

  test('kubeconform and the API server accept each object, without unknown fields', async () => {
    const schemas = path.join(folder, 'schemas');
    await writeSchemas(await cluster.plane.api.get('/openapi/v2'), schemas);
    const file = path.join(folder, 'rendered.yaml');
    await writeFile(file, await helm('template', 'palestra', chart, '--namespace', namespace, '--kube-version', KUBERNETES, ...values));
    // The resources of the Prometheus operator have no schema here.
    const options = [
      '-strict',
      '-summary',
      '-skip',
      'ServiceMonitor,PodMonitor',
      '-schema-location',
      `${schemas}/{{.ResourceKind}}{{.KindSuffix}}.json`,
    ];
    const { stdout } = await run(program('PALESTRA_TEST_KUBECONFORM'), [...options, file]);
    expect(stdout).toMatch(/Valid: \d\d?, Invalid: 0, Errors: 0/);
    expect(await rejects(options, file)).toMatch(/additionalProperties|additional properties/);
  });
});

/** What kubeconform says of the same objects with a field that does not exist: the schemas are strict. */
async function rejects(options: string[], file: string): Promise<string> {
  const broken = `${file}.broken.yaml`;
  await run('sh', ['-c', 'sed "s/terminationGracePeriodSeconds:/terminationGracePeriod:/" "$0" > "$1"', file, broken]);
  return run(program('PALESTRA_TEST_KUBECONFORM'), [...options, broken]).then(
    () => 'it accepts them',
    ({ stdout }: { stdout: string }) => stdout,
  );
}

test.each([
  ['postgresql.connections=50', /postgresql.connections: 2 replicas and 1 workers may open 142 connections, but PostgreSQL grants 50/],
  ['existingSecret=', /existingSecret: create the Secret/],
  ['api.replicaCount=3', /additional properties 'replicaCount' not allowed|Additional property replicaCount is not allowed/],
  ['api.replicas=0', /minimum/],
])('values that cannot work are an error: %s', async (value, message) => {
  const error = await helm('template', 'palestra', chart, '--kube-version', KUBERNETES, ...LEAST, '--set', value).catch(
    ({ stderr }: { stderr: string }) => stderr,
  );
  expect(error).toMatch(message);
});

describe('installed', () => {
  let proxy: RoundRobinProxy;
  const targets: { host: string; port: number }[] = [];
  const isEnding = new AbortController();
  const stores: string[] = [];
  const values = () =>
    [
      `existingSecret=palestra,publicUrl=${proxy.url},s3.bucket=palestra,s3.endpoint=${address('s3', 7070)}`,
      `image.repository=${inject('images').palestra.replace(/:1$/, '')},image.pullPolicy=Never`,
      'api.drainSeconds=10,api.poolSize=6,worker.poolSize=6',
    ].flatMap((one) => ['--set', one]);
  const install = (command: string, tag: string) =>
    helm(
      command,
      'palestra',
      chart,
      '--namespace',
      namespace,
      '--wait',
      '--timeout',
      '280s',
      ...values(),
      '--set-string',
      `image.tag=${tag}`,
    );
  const podman = (...args: string[]): string => execFileSync(engine(), args, { encoding: 'utf8' }).trim();
  const address = (name: string, port: number, scheme = 'http'): string =>
    `${scheme}://${podman('inspect', '--format', '{{.NetworkSettings.IPAddress}}', `${mark}-${name}`)}:${port}`;
  const start = (name: string, ...args: string[]) => {
    stores.push(`${mark}-${name}`);
    podman('run', '-d', '--name', `${mark}-${name}`, ...args);
  };
  const [owner, runtime] = [random(), random()];
  const s3 = { key: random(), secret: random() };

  /** Keeps the list of targets: the ready pods of the Service. */
  async function follow(): Promise<void> {
    const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?labelSelector=kubernetes.io/service-name=palestra`;
    for (; !isEnding.signal.aborted; await sleep(100)) {
      const found = await cluster.plane.api.get(slices).catch(() => null);
      if (found === null) continue;
      const ready = found.items.flatMap(({ endpoints }: any) => endpoints ?? []).filter(({ conditions }: any) => conditions.ready);
      const hosts = ready.map(({ addresses }: any) => ({ host: addresses[0] as string, port: 8080 }));
      targets.splice(0, targets.length, ...hosts);
    }
  }

  beforeAll(async () => {
    const { postgres, s3: store } = inject('images');
    const database = ['POSTGRES_USER=palestra', 'POSTGRES_DB=palestra', `POSTGRES_PASSWORD=${owner}`].flatMap((one) => ['-e', one]);
    start('postgres', ...database, '--tmpfs', '/run/postgresql:mode=3777', postgres);
    const keys = [`ROOT_ACCESS_KEY=${s3.key}`, `ROOT_SECRET_KEY=${s3.secret}`].flatMap((one) => ['-e', one]);
    const serve = 'mkdir -p /data/palestra && exec versitygw --port :7070 --health /healthz posix /data';
    start('s3', ...keys, '--entrypoint', '["sh","-c"]', store, serve);
    proxy = await startRoundRobinProxy({ targets });
    const url = address('postgres', 5432, 'postgresql');
    const as = (user: string, password: string) => `${url.replace('://', `://${user}:${password}@`)}/palestra`;
    await cluster.plane.api.post(`/api/v1/namespaces/${namespace}/secrets`, {
      metadata: { name: 'palestra' },
      stringData: {
        'database-url': as('palestra_runtime', runtime),
        'database-migration-url': as('palestra', owner),
        'api-key': apiKey,
        'secret-key': randomBytes(32).toString('base64'),
        's3-access-key-id': s3.key,
        's3-secret-access-key': s3.secret,
      },
    });
    await vi.waitFor(() => podman('exec', `${mark}-postgres`, 'pg_isready', '-h', '127.0.0.1', '-U', 'palestra'), { timeout: 60_000 });
    podman('tag', inject('images').palestra, inject('images').palestra.replace(/:1$/, ':2'));
    void follow();
  });
  afterAll(async () => {
    isEnding.abort();
    await proxy?.close();
    for (const name of stores) podman('rm', '-f', '-v', '-t', '0', name);
    podman('rmi', inject('images').palestra.replace(/:1$/, ':2'));
  });

  test('the migration runs, all pods become ready without rights, and a session plays', async () => {
    await install('install', '1');
    const { items } = await cluster.plane.api.get(`/api/v1/namespaces/${namespace}/pods`);
    const running = items.filter(({ status }: any) => status.phase === 'Running');
    expect(running.map(({ metadata }: any) => metadata.labels['app.kubernetes.io/component']).toSorted()).toEqual(['api', 'api', 'worker']);
    for (const { spec } of running) {
      expect(spec).toMatchObject({ automountServiceAccountToken: false, securityContext: { runAsNonRoot: true, runAsUser: 1000 } });
      const [{ securityContext, volumeMounts }] = spec.containers;
      expect(securityContext).toEqual({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } });
      expect(volumeMounts.map(({ mountPath }: any) => mountPath).toSorted()).toEqual(['/data', '/tmp']);
    }
    const client = new PalestraClient({ url: proxy.url, apiKey });
    await using session = await client.session({ environment: 'palestra/echo', split: 'train', index: 1 });
    expect((await session.call('echo', { text: 'in pods' })).blocks).toMatchObject([{ text: 'in pods' }]);
    await client.close();
  });

  test('an upgrade under load loses no acknowledged call and repeats none', async () => {
    const isOver = new AbortController();
    const played: { sid: string; acknowledged: string[] }[] = [];
    const clients = Array.from({ length: 8 }, async (_, player) => {
      const client = new PalestraClient({ url: proxy.url, apiKey });
      while (!isOver.signal.aborted) {
        await using session = await client.session({ environment: 'palestra/echo', split: 'train', index: player });
        const one = { sid: session.sid, acknowledged: [] as string[] };
        played.push(one);
        for (let call = 0; call < 40 && !isOver.signal.aborted; call += 1) {
          const text = `${player} ${call}`;
          const { blocks } = await session.call('echo', { text });
          expect(blocks).toMatchObject([{ text }]);
          one.acknowledged.push(text);
          await sleep(50);
        }
      }
      await client.close();
    });
    const load = Promise.all(clients);
    const before = new Set(targets.map(({ host }) => host));
    try {
      // An error of a client ends the wait.
      await Promise.race([install('upgrade', '2'), load]);
      await vi.waitUntil(() => targets.length === 2 && targets.every(({ host }) => !before.has(host)), { timeout: 60_000, interval: 100 });
    } finally {
      isOver.abort();
    }
    await load;
    const reader = new PalestraClient({ url: proxy.url, apiKey });
    let calls = 0;
    for (const { sid, acknowledged } of played) {
      const ledger: string[] = [];
      for await (const { tool, input } of reader.sessions.calls(sid))
        if (tool === 'echo') ledger.push((JSON.parse(input) as { text: string }).text);
      expect(ledger).toEqual(acknowledged);
      calls += acknowledged.length;
    }
    await reader.close();
    expect(calls).toBeGreaterThan(100);
  });
});
