import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Api } from './api.ts';
import { fieldOf, type FileSource, NotStarted, type Pod, type Volume } from './pod.ts';
import { tokenOf } from './pod-token.ts';

export interface PodPlace {
  pod: Pod;
  api: Api;
  /** Of the pod, on this machine. */
  folder: string;
  podIP: string;
  node: string;
  apiServer: { host: string; port: number };
}

/** Folders of the volumes of a pod, by name; containers mount them. */
export async function makeVolumes(place: PodPlace): Promise<Map<string, string>> {
  const folders = new Map<string, string>();
  for (const volume of place.pod.spec.volumes ?? []) {
    const folder = path.join(place.folder, 'volumes', volume.name);
    mkdirSync(folder, { recursive: true });
    folders.set(volume.name, folder);
    // Writable for every user of the pod.
    if (volume.emptyDir) chmodSync(folder, 0o777);
    else await fill(place, volume, folder);
  }
  return folders;
}

async function fill(place: PodPlace, volume: Volume, folder: string): Promise<void> {
  const sources = volume.projected?.sources ?? [volume];
  const defaultMode = volume.projected?.defaultMode ?? volume.secret?.defaultMode ?? volume.configMap?.defaultMode ?? 0o644;
  for (const source of sources) {
    for (const { name, content, mode } of await filesOf(place, source)) {
      const file = path.join(folder, name);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, content);
      chmodSync(file, mode ?? defaultMode);
    }
  }
}

interface File {
  name: string;
  content: Buffer | string;
  mode?: number;
}

async function filesOf(place: PodPlace, source: FileSource): Promise<File[]> {
  const { pod, api, podIP, node } = place;
  if (source.serviceAccountToken) {
    return [{ name: source.serviceAccountToken.path, content: await tokenOf(api, pod, source.serviceAccountToken) }];
  }
  if (source.downwardAPI) {
    return source.downwardAPI.items.map(({ path: name, fieldRef }) => ({
      name,
      content: fieldOf(pod, fieldRef!.fieldPath, podIP, node),
    }));
  }
  const kind = source.secret ? 'secrets' : 'configmaps';
  const wanted = source.secret ?? source.configMap;
  if (wanted === undefined) throw new NotStarted('FailedMount', 'the test kubelet does not know this kind of volume');
  const from = 'secretName' in wanted ? wanted.secretName! : wanted.name!;
  // A node waits for it, and does not call it an error of the container.
  const data = await dataOf(api, pod.metadata.namespace, kind, from, wanted.optional).catch((error: unknown) => {
    throw error instanceof NotStarted ? new NotStarted('ContainerCreating', '') : error;
  });
  if (wanted.items === undefined) return Object.entries(data).map(([name, content]) => ({ name, content }));
  return wanted.items.map(({ key, path: name, mode }) => {
    if (data[key] === undefined) throw new NotStarted('FailedMount', `references non-existent key ${key}`);
    return { name, content: data[key], ...(mode !== undefined && { mode }) };
  });
}

/** The values of a Secret or ConfigMap. */
export async function dataOf(
  api: Api,
  namespace: string,
  kind: 'secrets' | 'configmaps',
  name: string,
  optional = false,
): Promise<Record<string, Buffer | string>> {
  const found = await api.find<{ data?: Record<string, string> }>(`/api/v1/namespaces/${namespace}/${kind}/${name}`);
  if (found === null && !optional) throw new NotStarted('CreateContainerConfigError', `${kind.slice(0, -1)} "${name}" not found`);
  const data = Object.entries(found?.data ?? {});
  return Object.fromEntries(data.map(([key, value]) => [key, kind === 'secrets' ? Buffer.from(value, 'base64') : value]));
}
