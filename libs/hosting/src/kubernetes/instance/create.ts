import type { V1OwnerReference, V1Secret } from '@kubernetes/client-node';
import { HostingError } from '../../provider/hosting-error.ts';
import { type Cluster, ClusterRefusal, isRefusal } from '../cluster/cluster.ts';

/** Null if it exists. What the cluster refuses, such as more than a quota, ends the instance. */
export async function createForInstance<T>(cluster: Cluster, path: string, body: object, signal: AbortSignal): Promise<T | null> {
  try {
    return await cluster.request<T>({ method: 'POST', path, body }, signal);
  } catch (error) {
    if (isRefusal(error, 409)) return null;
    if (error instanceof ClusterRefusal) throw refused(error);
    throw error;
  }
}

function refused(error: ClusterRefusal): HostingError {
  if (/exceeded quota/.test(error.message)) {
    const advice = 'Raise the ResourceQuota of the namespace, or lower the limits of the environment (palestra env scale).';
    return new HostingError('instance_failed', `The cluster has no room for the instance: ${error.message}. ${advice}`, { cause: error });
  }
  return new HostingError('instance_failed', `The cluster refused the instance (${error.status}): ${error.message}`, { cause: error });
}

/** The cluster deletes it after its owner. */
export const ownedSecret = (secret: {
  name: string;
  labels: Record<string, string>;
  secrets: Readonly<Record<string, string>>;
  owner: V1OwnerReference;
}): V1Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: secret.name, labels: secret.labels, ownerReferences: [secret.owner] },
  immutable: true,
  data: Object.fromEntries(Object.entries(secret.secrets).map(([key, value]) => [key, Buffer.from(value).toString('base64')])),
});
