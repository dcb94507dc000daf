import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type InstanceSpec, KubernetesProvider, type KubernetesProviderOptions, type RunningInstance } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import { expect } from 'vitest';
import { call, SERVER, soon, specOf } from '../../integration/hosting/docker-instances.world.ts';
import type { TestEngine } from '../../integration/hosting/docker-engine.world.ts';
import type { Api } from './api.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { documentedRules } from './documented-role.ts';

/** Builds an image from files by the command of the engine; its name. */
export function buildImage(engine: TestEngine, name: string, dockerfile: string, files: Record<string, string> = {}): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-image-'));
  const image = `localhost/palestra-test/${name}:${process.pid}`;
  try {
    for (const [file, text] of Object.entries({ ...files, Dockerfile: dockerfile })) writeFileSync(path.join(folder, file), text);
    const label = `palestra.dev/installation=${engine.installation}`;
    engine.ask('build', '-q', '--format', 'docker', '--label', label, '-t', image, folder);
    return image;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A cluster, and a provider that may do what docs/hosting.md gives it and nothing else. */
export async function startProviderWorld(prepare?: (api: Api) => Promise<void>, rules: () => object[] = documentedRules) {
  const cluster = await startCluster(prepare);
  const { plane, engine } = cluster;
  const image = buildImage(engine, 'actions', `FROM ${engine.image}\nCOPY server.mjs /app/server.mjs\nCMD ["node", "/app/server.mjs"]\n`, {
    'server.mjs': SERVER,
  });
  return { ...cluster, image, installation: engine.installation, ...(await space(cluster)), space: () => space(cluster) };

  /** A namespace with an account of its own. */
  async function space({ plane: { api }, engine: { installation } }: Cluster) {
    const namespace = await plane.namespace();
    const token = await plane.account(namespace, 'palestra', rules());
    const path = `/api/v1/namespaces/${namespace}`;
    return {
      namespace,
      token,
      provider: (options: Partial<KubernetesProviderOptions> = {}, as = token) =>
        providerOf(plane.config(as, namespace), { installation, ...options }),
      pods: async () => (await api.get<{ items: any[] }>(`${path}/pods`)).items,
      pod: (id: string) => api.get(`${path}/pods/palestra-${id}`),
      secrets: async () => (await api.get<{ items: any[] }>(`${path}/secrets`)).items,
    };
  }
}

export type ProviderWorld = Awaited<ReturnType<typeof startProviderWorld>>;

const folder = mkdtempSync(path.join(tmpdir(), 'palestra-kubeconfig-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

/** The test calls pods from this machine, by the address of Podman's bridge. */
export function providerOf(kubeconfig: string, options: Partial<KubernetesProviderOptions> & { installation: string }): KubernetesProvider {
  const file = path.join(folder, newUuid());
  writeFileSync(file, kubeconfig, { mode: 0o600 });
  const callers = { pods: null, networks: ['10.88.0.1/32'] };
  return new KubernetesProvider({ callers, kubeconfig: file, enforcesNetworkPolicy: true, ...options });
}

export const imageSpec = (image: string, given: Partial<InstanceSpec> = {}): InstanceSpec =>
  specOf({ kind: 'image', digest: `sha256:${'0'.repeat(64)}`, image, port: 8_000 }, given);

export const only = async (provider: KubernetesProvider, id: string): Promise<RunningInstance | undefined> =>
  (await provider.list(soon())).find((one) => one.id === id);

/** Runs it until it answers. */
export async function startPod(provider: KubernetesProvider, spec: InstanceSpec): Promise<RunningInstance> {
  await provider.ensure(spec, soon());
  await expect.poll(async () => (await only(provider, spec.id))?.endpoint ?? null).not.toBeNull();
  const instance = (await only(provider, spec.id))!;
  await expect.poll(() => call(instance, 'echo', { is: 'up' }).catch(() => null)).toEqual({ is: 'up' });
  return instance;
}

/** Removes all instances; throws if a pod is left. */
export async function removeAll({ provider, pods }: { provider: () => KubernetesProvider; pods: ProviderWorld['pods'] }): Promise<void> {
  const one = provider();
  await Promise.all((await one.list(soon())).map(({ id }) => one.remove(id, 1_000, soon())));
  const left = (await pods()).map(({ metadata }) => metadata.name);
  if (left.length > 0) throw new Error(`left behind: ${left.join(', ')}`);
}
