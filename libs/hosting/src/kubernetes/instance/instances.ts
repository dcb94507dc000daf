import { setTimeout as sleep } from 'node:timers/promises';
import type { V1Secret } from '@kubernetes/client-node';
import { HostingError } from '../../provider/hosting-error.ts';
import type { RunningInstance } from '../../provider/provider.port.ts';
import { type Cluster, isRefusal } from '../cluster/cluster.ts';
import { LABEL, names, selector } from '../cluster/names.ts';
import { createForInstance, ownedSecret } from './create.ts';
import type { Guards } from './guards.ts';
import { type ImageSpec, instancePod, type Placement } from './instance-pod.ts';
import type { Pod } from './pod.ts';
import { viewOf } from './pod-view.ts';

export interface InstancesOptions {
  cluster: Cluster;
  guards: Guards;
  installation: string;
  placement: Placement;
}

const POLL_MS = 200;

/**
 * Instances as pods. A pod that ends stays, with its log, until it is removed. Its Secret belongs to it, so that the cluster deletes the Secret
 * after the pod, whoever deletes that.
 */
export class Instances {
  readonly #options: InstancesOptions;

  constructor(options: InstancesOptions) {
    this.#options = options;
  }

  async list(signal: AbortSignal): Promise<RunningInstance[]> {
    const { cluster, installation } = this.#options;
    const labels = selector({ [LABEL.installation]: installation, [LABEL.role]: 'server' });
    return (await cluster.list<Pod>(this.#pods(), labels, signal)).map(viewOf);
  }

  async ensure(spec: ImageSpec, runtimeClass: string | null, signal: AbortSignal): Promise<RunningInstance> {
    const { cluster, guards, installation, placement } = this.#options;
    // Before the first pod, which would otherwise have the network of the cluster.
    await guards.apply(signal);
    const created = await createForInstance<Pod>(
      cluster,
      this.#pods(),
      instancePod(spec, { installation, placement, runtimeClass }),
      signal,
    );
    const pod = created ?? (await this.#find(spec.id, signal));
    if (pod === null) throw new HostingError('instance_failed', 'The instance was removed while it started.');
    // The node waits for the Secret that the pod names.
    if (Object.keys(spec.secrets).length > 0 && !pod.metadata.deletionTimestamp) {
      await createForInstance(cluster, `/api/v1/namespaces/${cluster.namespace}/secrets`, secretOf(spec, pod), signal);
    }
    return viewOf(pod);
  }

  async remove(id: string, graceMs: number, signal: AbortSignal): Promise<void> {
    const { cluster } = this.#options;
    const pod = await this.#find(id, signal);
    if (pod === null) return;
    // Without grace the API server would forget the pod at once, and its container might go on.
    const body = { gracePeriodSeconds: Math.max(1, Math.ceil(graceMs / 1_000)), preconditions: { uid: pod.metadata.uid } };
    try {
      await cluster.request({ method: 'DELETE', path: this.#pod(id), body }, signal);
    } catch (error) {
      if (!isRefusal(error, 404, 409)) throw error;
    }
    while ((await this.#find(id, signal))?.metadata.uid === pod.metadata.uid) await sleep(POLL_MS, undefined, { signal });
  }

  #pods(): string {
    return `/api/v1/namespaces/${this.#options.cluster.namespace}/pods`;
  }

  #pod(id: string): string {
    return `${this.#pods()}/${names.server(id)}`;
  }

  /** Null if there is none of this installation. */
  async #find(id: string, signal: AbortSignal): Promise<Pod | null> {
    const pod = await this.#options.cluster.find<Pod>(this.#pod(id), signal);
    return pod?.metadata.labels?.[LABEL.installation] === this.#options.installation ? pod : null;
  }
}

const secretOf = ({ id, secrets }: ImageSpec, { metadata: { labels = {}, name, uid } }: Pod): V1Secret =>
  ownedSecret({ name: names.server(id), labels, secrets, owner: { apiVersion: 'v1', kind: 'Pod', name, uid } });
