import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Api, isStatus } from './api.ts';

interface Owned {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace: string;
    uid: string;
    creationTimestamp: string;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    ownerReferences?: { uid: string }[];
  };
  spec: any;
  status?: any;
}

const CORE = 'agents.x-k8s.io/v1beta1';
const EXTENSIONS = 'extensions.agents.x-k8s.io/v1beta1';
const HASH = 'palestra.test/template';
const POLL_MS = 100;
/** The domain in which the real controller lets claims label pods, unless it is configured otherwise. */
const LABEL_DOMAIN = 'sandbox.users.io/';

/**
 * A FAKE of the controller of kubernetes-sigs/agent-sandbox, for tests: the real one is a Go program that these tests cannot build. It does what
 * the documentation and source of v1beta1 (commit 2fd412d5) say of the few things that Palestra relies on, by polling as administrator: pools keep
 * Sandboxes, claims adopt a ready one or start one, Sandboxes have a pod of the same name, which is made again if it is gone. As with the real
 * one, what has lost its owner is deleted by the garbage collector of the cluster. What it proves is our side of the API, and nothing about the
 * speed or the faults of the real controller.
 */
export class FakeAgentSandboxController {
  readonly #api: Api;
  #isClosed = false;
  #loop: Promise<void> = Promise.resolve();
  /** While true it does nothing, as one that is not running. */
  paused = false;

  private constructor(api: Api) {
    this.#api = api;
  }

  static start(api: Api): FakeAgentSandboxController {
    const controller = new FakeAgentSandboxController(api);
    controller.#loop = controller.#run();
    return controller;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#loop;
  }

  async #run(): Promise<void> {
    for (; !this.#isClosed; await sleep(POLL_MS)) {
      if (this.paused) continue;
      // What changed or went meanwhile, and what the API server could not do just now, is seen by the next pass.
      const attempt = (work: () => Promise<void>) =>
        work().catch((error: unknown) => {
          if (!isStatus(error, 404, 405, 409, 429, 500, 503, 504)) throw error;
        });
      await attempt(async () => {
        for (const pool of await this.#list(EXTENSIONS, 'sandboxwarmpools')) await attempt(() => this.#fill(pool));
        for (const claim of await this.#list(EXTENSIONS, 'sandboxclaims')) await attempt(() => this.#answer(claim));
        for (const sandbox of await this.#list(CORE, 'sandboxes')) await attempt(() => this.#runPod(sandbox));
      });
    }
  }

  async #fill(pool: Owned): Promise<void> {
    const template = await this.#template(pool);
    if (template === null) return;
    const digest = hashOf(template);
    const own = await this.#poolSandboxes(pool);
    const stale = own.filter(({ metadata }) => metadata.annotations?.[HASH] !== digest);
    const fresh = own.filter((one) => !stale.includes(one)).toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    const { replicas, updateStrategy } = pool.spec;
    for (const one of updateStrategy?.type === 'Recreate' ? stale : []) await this.#api.delete(pathOf(CORE, 'sandboxes', one));
    for (const one of fresh.slice(replicas)) await this.#api.delete(pathOf(CORE, 'sandboxes', one));
    for (let missing = replicas - fresh.length; missing > 0; missing -= 1) await this.#createSandbox(pool, template);
    const status = { replicas: fresh.length, readyReplicas: fresh.filter(isReady).length };
    await this.#writeStatus('sandboxwarmpools', pool, status);
  }

  async #answer(claim: Owned): Promise<void> {
    const name = claim.status?.sandbox?.name;
    if (name !== undefined) {
      const sandbox = await this.#api.find<Owned>(pathOf(CORE, 'sandboxes', { metadata: { ...claim.metadata, name } }));
      const ready = sandbox?.status?.conditions?.find(({ type }: { type: string }) => type === 'Ready');
      const condition = ready ?? no('SandboxMissing', 'Sandbox does not exist');
      await this.#writeStatus('sandboxclaims', claim, {
        sandbox: { name, podIPs: sandbox?.status?.podIPs ?? [] },
        conditions: [condition],
      });
      return;
    }
    const poolName = claim.spec.warmPoolRef.name;
    const pool = await this.#api.find<Owned>(pathOf(EXTENSIONS, 'sandboxwarmpools', { metadata: { ...claim.metadata, name: poolName } }));
    const template = pool === null ? null : await this.#template(pool);
    const { labels = {}, annotations = {} } = claim.spec.additionalPodMetadata ?? {};
    const wrong = Object.keys(labels).find((label) => !label.startsWith(LABEL_DOMAIN));
    if (pool === null || template === null) return this.#refuse(claim, 'WarmPoolNotFound', `SandboxWarmPool "${poolName}" not found`);
    if (wrong !== undefined) return this.#refuse(claim, 'InvalidMetadata', `label domain of "${wrong}" is not in the allowlist`);
    const candidates = (await this.#poolSandboxes(pool)).filter(({ metadata }) => metadata.annotations?.[HASH] === hashOf(template));
    const sandbox = candidates.find(isReady) ?? candidates[0] ?? (await this.#createSandbox(claim, template));
    const at = pathOf(CORE, 'sandboxes', sandbox);
    await this.#api.merge(at, {
      metadata: { ownerReferences: [ownerOf(claim)] },
      spec: { podTemplate: { metadata: { labels, annotations } } },
    });
    await this.#api.merge(pathOf(EXTENSIONS, 'sandboxclaims', claim), {
      metadata: { annotations: { 'agents.x-k8s.io/sandbox-name': sandbox.metadata.name } },
    });
    await this.#writeStatus('sandboxclaims', claim, { sandbox: { name: sandbox.metadata.name, podIPs: [] } });
  }

  async #runPod(sandbox: Owned): Promise<void> {
    const { name, namespace, deletionTimestamp } = sandbox.metadata;
    if (deletionTimestamp) return;
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const { metadata, spec } = sandbox.spec.podTemplate;
    const pod = await this.#api.find<any>(`${pods}/${name}`);
    if (pod === null) {
      // It may have gone after it was listed, and its pod with it.
      const now = await this.#api.find<Owned>(pathOf(CORE, 'sandboxes', sandbox));
      if (now === null || now.metadata.deletionTimestamp || now.metadata.uid !== sandbox.metadata.uid) return;
      await this.#api.post(pods, { metadata: { ...metadata, name, ownerReferences: [ownerOf(sandbox)] }, spec });
      return;
    }
    const labels = metadata?.labels ?? {};
    if (Object.entries(labels).some(([key, value]) => pod.metadata.labels?.[key] !== value))
      await this.#api.merge(`${pods}/${name}`, { metadata });
    const ready = pod.status?.conditions?.find(({ type }: { type: string }) => type === 'Ready')?.status === 'True' && pod.status.podIP;
    await this.#writeStatus('sandboxes', sandbox, {
      podIPs: pod.status?.podIP ? [pod.status.podIP] : [],
      conditions: [ready ? yes : no('DependenciesNotReady', `Pod exists with phase: ${pod.status?.phase}`)],
    });
  }

  #refuse(claim: Owned, reason: string, message: string): Promise<void> {
    return this.#writeStatus('sandboxclaims', claim, { conditions: [no(reason, message)] });
  }

  #createSandbox(owner: Owned, template: Owned): Promise<Owned> {
    const { namespace, name } = owner.metadata;
    return this.#api.post<Owned>(`/apis/${CORE}/namespaces/${namespace}/sandboxes`, {
      apiVersion: CORE,
      kind: 'Sandbox',
      metadata: { generateName: `${name}-`, annotations: { [HASH]: hashOf(template) }, ownerReferences: [ownerOf(owner)] },
      spec: { podTemplate: template.spec.podTemplate },
    });
  }

  async #poolSandboxes(pool: Owned): Promise<Owned[]> {
    const all = await this.#list(CORE, 'sandboxes');
    return all.filter(
      ({ metadata }) => !metadata.deletionTimestamp && metadata.ownerReferences?.some(({ uid }) => uid === pool.metadata.uid) === true,
    );
  }

  #template({ metadata, spec }: Owned): Promise<Owned | null> {
    return this.#api.find<Owned>(pathOf(EXTENSIONS, 'sandboxtemplates', { metadata: { ...metadata, name: spec.sandboxTemplateRef.name } }));
  }

  /** In all namespaces. */
  async #list(version: string, plural: string): Promise<Owned[]> {
    const { items, apiVersion, kind } = await this.#api.get<{ items: Owned[]; apiVersion: string; kind: string }>(
      `/apis/${version}/${plural}`,
    );
    return items.map((item) => ({ ...item, apiVersion, kind: kind.replace(/List$/, '') }));
  }

  async #writeStatus(plural: string, object: Owned, status: object): Promise<void> {
    if (JSON.stringify({ ...object.status, ...status }) === JSON.stringify(object.status ?? null)) return;
    await this.#api.merge(`${pathOf(plural === 'sandboxes' ? CORE : EXTENSIONS, plural, object)}/status`, { status });
  }
}

/** Nobody reads it. */
const lastTransitionTime = '2026-01-01T00:00:00Z';
const yes = { type: 'Ready', status: 'True', reason: 'DependenciesReady', message: 'Pod is ready', lastTransitionTime };
const no = (reason: string, message: string) => ({ type: 'Ready', status: 'False', reason, message, lastTransitionTime });
const isReady = ({ status }: Owned): boolean => status?.conditions?.[0]?.status === 'True';
const hashOf = ({ spec }: Owned): string => createHash('sha256').update(JSON.stringify(spec.podTemplate)).digest('hex').slice(0, 16);
const pathOf = (version: string, plural: string, { metadata }: { metadata: { namespace: string; name: string } }): string =>
  `/apis/${version}/namespaces/${metadata.namespace}/${plural}/${metadata.name}`;
const ownerOf = ({ apiVersion, kind, metadata: { name, uid } }: Owned) => ({
  apiVersion,
  kind,
  name,
  uid,
  controller: true,
  blockOwnerDeletion: true,
});
