import { LABEL, names, selector } from '../cluster/names.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { isRefusal } from '../cluster/cluster.ts';
import { createForInstance, ownedSecret } from '../instance/create.ts';
import type { Guards } from '../instance/guards.ts';
import type { AgentSandbox } from './agent-sandbox.ts';
import {
  claimsBudget,
  FRESH_MS,
  ownerOf,
  type Pool,
  poolLabels,
  poolOf,
  type PoolImageSpec,
  secretName,
  type Template,
  templateOf,
  type WarmOptions,
} from './objects.ts';

export interface WarmPoolsOptions extends WarmOptions {
  cluster: Cluster;
  guards: Guards;
  agentSandbox: AgentSandbox;
}

/** Warm pools of versions as objects of agent-sandbox: a template, its pool, and a Secret. */
export class VersionPools {
  readonly #options: WarmPoolsOptions;
  /** What was applied last, and when: somebody may change it. */
  readonly #kept = new Map<string, { text: string; replicas: number; at: number }>();

  constructor(options: WarmPoolsOptions) {
    this.#options = options;
  }

  async list(signal: AbortSignal): Promise<string[]> {
    const { cluster, agentSandbox, installation } = this.#options;
    const found = await cluster.list<Template>(
      agentSandbox.path('sandboxtemplates'),
      selector({ [LABEL.installation]: installation }),
      signal,
    );
    return found.flatMap(({ metadata }) => (metadata.deletionTimestamp ? [] : [metadata.labels?.[LABEL.version] ?? []].flat()));
  }

  async keep(spec: PoolImageSpec, runtimeClass: string | null, replicas: number, signal: AbortSignal): Promise<void> {
    const { cluster, guards, agentSandbox, installation } = this.#options;
    const { versionId } = spec;
    const template = templateOf(spec, { ...this.#options, runtimeClass });
    const text = JSON.stringify([template, replicas]);
    const kept = this.#kept.get(versionId);
    if (kept?.text === text && performance.now() - kept.at < FRESH_MS) return;
    // Before the first pod, which would otherwise have the network of the cluster.
    await guards.apply(signal);
    const budget = claimsBudget(installation);
    await cluster.apply(`/apis/policy/v1/namespaces/${cluster.namespace}/poddisruptionbudgets/${budget.metadata.name}`, budget, signal);
    const name = names.pool(versionId);
    const applied = (await cluster.apply(agentSandbox.path('sandboxtemplates', name), template, signal)) as Template;
    if (Object.keys(spec.secrets).length > 0) {
      const labels = poolLabels(installation, versionId);
      const secret = ownedSecret({ name: secretName(spec), labels, secrets: spec.secrets, owner: ownerOf(applied) });
      await createForInstance(cluster, `/api/v1/namespaces/${cluster.namespace}/secrets`, secret, signal);
    }
    const pool = poolOf(versionId, replicas, applied, installation);
    await cluster.apply(agentSandbox.path('sandboxwarmpools', name), pool, signal);
    this.#kept.set(versionId, { text, replicas, at: performance.now() });
  }

  /** The pool as it is now, or one without anything warm, with the template that this spec makes: settings may have changed. */
  async provide(spec: PoolImageSpec, runtimeClass: string | null, signal: AbortSignal): Promise<void> {
    const { cluster, agentSandbox } = this.#options;
    const path = agentSandbox.path('sandboxwarmpools', names.pool(spec.versionId));
    const find = async () => (await cluster.find<Pool>(path, signal))?.spec.replicas ?? 0;
    await this.keep(spec, runtimeClass, this.#kept.get(spec.versionId)?.replicas ?? (await find()), signal);
  }

  async remove(versionId: string, signal: AbortSignal): Promise<void> {
    const { cluster, agentSandbox } = this.#options;
    this.#kept.delete(versionId);
    try {
      await cluster.request({ method: 'DELETE', path: agentSandbox.path('sandboxtemplates', names.pool(versionId)) }, signal);
    } catch (error) {
      if (!isRefusal(error, 404)) throw error;
    }
  }
}
