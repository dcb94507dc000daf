import { setTimeout as sleep } from 'node:timers/promises';
import { HostingError } from '../../provider/hosting-error.ts';
import type { RunningInstance } from '../../provider/provider.port.ts';
import { type Cluster, isRefusal } from '../cluster/cluster.ts';
import { LABEL, names, selector } from '../cluster/names.ts';
import { createForInstance } from '../instance/create.ts';
import type { Pod } from '../instance/pod.ts';
import type { AgentSandbox } from './agent-sandbox.ts';
import { claimView } from './claim-view.ts';
import { type Claim, claimOf } from './objects.ts';

interface ClaimsOptions {
  cluster: Cluster;
  agentSandbox: AgentSandbox;
  installation: string;
}

const POLL_MS = 100;
/** How long a start waits for a warm pod. The next list finds one that comes later. */
const BIND_MS = 3_000;
const REMOVE_POLL_MS = 200;

/** Instances that are claims of agent-sandbox on the warm pool of their version. */
export class Claims {
  readonly #options: ClaimsOptions;
  /** Pods of claims as they were last seen. agent-sandbox replaces a pod that is gone, and sessions of the first one are lost. */
  readonly #pods = new Map<string, { name: string; uid: string }>();

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  async list(signal: AbortSignal): Promise<RunningInstance[]> {
    const { cluster, agentSandbox, installation } = this.#options;
    const labels = { [LABEL.installation]: installation };
    const pods = await cluster.list<Pod>(this.#podsPath(), selector({ ...labels, [LABEL.role]: 'warm' }), signal);
    const claims = await cluster.list<Claim>(agentSandbox.path('sandboxclaims'), selector(labels), signal);
    const byName = new Map(pods.map((pod) => [pod.metadata.name, pod]));
    const views = claims.map((claim) => this.#view(claim, byName.get(claim.status?.sandbox?.name ?? '') ?? null));
    const ids = new Set(views.map(({ id }) => id));
    for (const id of this.#pods.keys()) if (!ids.has(id)) this.#pods.delete(id);
    return views;
  }

  /** The pool of the version exists. Waits a moment for a pod, so that a warm one is used at once. */
  async ensure(id: string, versionId: string, signal: AbortSignal): Promise<RunningInstance> {
    const { cluster, agentSandbox, installation } = this.#options;
    await createForInstance(cluster, agentSandbox.path('sandboxclaims'), claimOf(id, versionId, installation), signal);
    for (const deadline = performance.now() + BIND_MS; ; await sleep(POLL_MS, undefined, { signal })) {
      const claim = await this.#find(id, signal);
      if (claim === null) throw new HostingError('instance_failed', 'The instance was removed while it started.');
      const view = this.#view(claim, await this.#podOf(claim, signal));
      if (view.state !== 'starting' || performance.now() > deadline) return view;
    }
  }

  /** The claim takes its pod with it. */
  async remove(id: string, signal: AbortSignal): Promise<void> {
    const { cluster, agentSandbox } = this.#options;
    const claim = await this.#find(id, signal);
    if (claim === null) return;
    const pod = await this.#podOf(claim, signal);
    try {
      const body = { propagationPolicy: 'Background', preconditions: { uid: claim.metadata.uid } };
      await cluster.request({ method: 'DELETE', path: agentSandbox.path('sandboxclaims', names.server(id)), body }, signal);
    } catch (error) {
      if (!isRefusal(error, 404, 409)) throw error;
    }
    const isThere = async () => pod !== null && (await this.#podOf(claim, signal))?.metadata.uid === pod.metadata.uid;
    while ((await this.#find(id, signal))?.metadata.uid === claim.metadata.uid || (await isThere())) {
      await sleep(REMOVE_POLL_MS, undefined, { signal });
    }
    this.#pods.delete(id);
  }

  /** Name of its pod; null: it is no claim, or has none yet. */
  async podName(id: string, signal: AbortSignal): Promise<string | null> {
    return this.#pods.get(id)?.name ?? (await this.#find(id, signal))?.status?.sandbox?.name ?? null;
  }

  #view(claim: Claim, pod: Pod | null): RunningInstance {
    const id = claim.metadata.labels?.[LABEL.instance] ?? '';
    const before = this.#pods.get(id) ?? null;
    const view = claimView(claim, pod, before?.uid ?? null);
    if (before === null && pod !== null && view.state === 'running') this.#pods.set(id, pod.metadata);
    return view;
  }

  #podOf({ status }: Claim, signal: AbortSignal): Promise<Pod | null> {
    const name = status?.sandbox?.name;
    return name === undefined || name === ''
      ? Promise.resolve(null)
      : this.#options.cluster.find<Pod>(`${this.#podsPath()}/${name}`, signal);
  }

  /** Null if there is none of this installation. */
  async #find(id: string, signal: AbortSignal): Promise<Claim | null> {
    const { cluster, agentSandbox, installation } = this.#options;
    const claim = await cluster.find<Claim>(agentSandbox.path('sandboxclaims', names.server(id)), signal);
    return claim?.metadata.labels?.[LABEL.installation] === installation ? claim : null;
  }

  #podsPath(): string {
    return `/api/v1/namespaces/${this.#options.cluster.namespace}/pods`;
  }
}
