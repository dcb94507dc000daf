import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { inject, vi } from 'vitest';
import { startCluster, type Cluster } from '../k8s/support/cluster.ts';
import { startRoundRobinProxy } from '../support/round-robin-proxy.ts';
import { engine, root } from './images.ts';
// Declares the images of images.global.ts.
import type {} from './images.global.ts';

export const chart = path.join(root, 'deploy/helm/palestra');
export const run = promisify(execFile);
const random = () => randomBytes(16).toString('hex');

export function program(variable: string): string {
  const value = process.env[variable];
  if (!value) throw new Error(`${variable} is not set; .ci/run sets it`);
  return value;
}

/** A control plane whose pods run in Podman, with a namespace for the service and one for environments. */
export interface ChartWorld extends Cluster {
  namespace: string;
  environments: string;
  /** For files of the test. */
  folder: string;
  helm(...args: string[]): Promise<string>;
}

export async function startChartWorld(): Promise<ChartWorld> {
  const folder = await mkdtemp(path.join(tmpdir(), 'palestra-chart-'));
  const cluster = await startCluster();
  const { plane } = cluster;
  const env = {
    ...process.env,
    KUBECONFIG: plane.kubeconfig,
    HELM_CACHE_HOME: folder,
    HELM_CONFIG_HOME: folder,
    HELM_DATA_HOME: folder,
  };
  return {
    ...cluster,
    folder,
    namespace: await plane.namespace('chart'),
    environments: await plane.namespace('environments'),
    helm: async (...args) => (await run(program('PALESTRA_TEST_HELM'), args, { env, maxBuffer: 2 ** 26 })).stdout,
    close: async () => {
      await cluster.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export interface Release {
  url: string;
  apiKey: string;
  /** The ready pods of the Service. */
  targets: { host: string; port: number }[];
  /** `helm install` or `helm upgrade`, until all is ready. */
  helm(command: 'install' | 'upgrade', tag: string): Promise<string>;
  close(): Promise<void>;
}

/**
 * What a release needs: PostgreSQL and S3 outside of the cluster, by URL, and the Secret. A proxy of the test, which follows the
 * EndpointSlices of the Service, stands in for an ingress controller: the cluster has no network of Services. Its image has the tags 1 and 2.
 */
export async function prepareRelease(world: ChartWorld): Promise<Release> {
  const { plane, namespace, environments } = world;
  const mark = `chart${process.pid}`;
  const images = inject('images');
  const stores: string[] = [];
  const [owner, runtime, key, secret] = [random(), random(), random(), random()];
  const apiKey = `or_${random()}${random()}`;
  const targets: Release['targets'] = [];
  const isEnding = new AbortController();
  const podman = (...args: string[]): string => execFileSync(engine(), args, { encoding: 'utf8' }).trim();
  const address = (name: string, port: number, scheme = 'http'): string =>
    `${scheme}://${podman('inspect', '--format', '{{.NetworkSettings.IPAddress}}', `${mark}-${name}`)}:${port}`;
  const start = (name: string, ...args: string[]) => {
    stores.push(`${mark}-${name}`);
    podman('run', '-d', '--name', `${mark}-${name}`, ...args);
  };
  const variables = (...all: string[]) => all.flatMap((one) => ['-e', one]);
  const repository = images.palestra.replace(/:1$/, '');

  const database = variables('POSTGRES_USER=palestra', 'POSTGRES_DB=palestra', `POSTGRES_PASSWORD=${owner}`);
  start('postgres', ...database, '--tmpfs', '/run/postgresql:mode=3777', images.postgres);
  const serve = 'mkdir -p /data/palestra && exec versitygw --port :7070 --health /healthz posix /data';
  start('s3', ...variables(`ROOT_ACCESS_KEY=${key}`, `ROOT_SECRET_KEY=${secret}`), '--entrypoint', '["sh","-c"]', images.s3, serve);
  podman('tag', images.palestra, `${repository}:2`);
  const url = address('postgres', 5432, 'postgresql');
  const as = (user: string, password: string) => `${url.replace('://', `://${user}:${password}@`)}/palestra`;
  await plane.api.post(`/api/v1/namespaces/${namespace}/secrets`, {
    metadata: { name: 'palestra' },
    stringData: {
      'database-url': as('palestra_runtime', runtime),
      'database-migration-url': as('palestra', owner),
      'api-key': apiKey,
      'secret-key': randomBytes(32).toString('base64'),
      's3-access-key-id': key,
      's3-secret-access-key': secret,
    },
  });
  await vi.waitFor(() => podman('exec', `${mark}-postgres`, 'pg_isready', '-h', '127.0.0.1', '-U', 'palestra'), { timeout: 60_000 });
  const proxy = await startRoundRobinProxy({ targets });
  const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?labelSelector=kubernetes.io/service-name=palestra`;
  const follow = async (): Promise<void> => {
    for (; !isEnding.signal.aborted; await sleep(100)) {
      const found = await plane.api.get(slices).catch(() => null);
      if (found === null) continue;
      const ready = found.items.flatMap(({ endpoints }: any) => endpoints ?? []).filter(({ conditions }: any) => conditions.ready);
      targets.splice(0, targets.length, ...ready.map(({ addresses }: any) => ({ host: addresses[0] as string, port: 8080 })));
    }
  };
  void follow();
  const values = [
    `existingSecret=palestra,publicUrl=${proxy.url},s3.bucket=palestra,s3.endpoint=${address('s3', 7070)}`,
    `image.repository=${repository},image.pullPolicy=Never`,
    'api.drainSeconds=10,api.poolSize=6,worker.poolSize=6',
    // Nothing enforces policies here; without the promise `egress: none` is refused.
    `hosting.kubernetes.enabled=true,hosting.kubernetes.namespace=${environments},hosting.kubernetes.networkPolicyEnforced=true`,
  ].flatMap((one) => ['--set', one]);
  return {
    url: proxy.url,
    apiKey,
    targets,
    helm: (command, tag) => {
      const options = ['--namespace', namespace, '--wait', '--timeout', '280s', ...values, '--set-string', `image.tag=${tag}`];
      return world.helm(command, 'palestra', chart, ...options);
    },
    close: async () => {
      isEnding.abort();
      await proxy.close();
      for (const name of stores) podman('rm', '-f', '-v', '-t', '0', name);
      podman('rmi', `${repository}:2`);
    },
  };
}
