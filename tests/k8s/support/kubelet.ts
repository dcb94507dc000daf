import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestEngine } from '../../integration/hosting/docker-engine.world.ts';
import { Api, isStatus } from './api.ts';
import { type ApiServerForPods, serveApiServer } from './api-server-for-pods.ts';
import type { ControlPlane } from './control-plane.ts';
import { serveLogs } from './kubelet-logs.ts';
import type { Pod } from './pod.ts';
import { PodRun } from './pod-run.ts';

export interface KubeletOptions {
  plane: ControlPlane;
  /** Runs the containers; null: there are none, and pods only look as if they ran. */
  engine: TestEngine | null;
  /** Of its node; default `podman-0` or `fake-0`. The label `palestra.test/runs` of the node is `podman` or `fake`. */
  name?: string;
  capacity?: Record<string, string>;
  /** Status of a pod without containers, in place of "it runs". Null: it runs. */
  fakeStatus?: (pod: Pod) => object | null;
}

/** A pod that runs or looks so. */
interface Running {
  sync(): Promise<object>;
  stop(graceMs: number): Promise<void>;
}

const POLL_MS = 200;
const HEARTBEAT_MS = 10_000;
const CAPACITY = { cpu: '64', memory: '64Gi', pods: '1000', 'ephemeral-storage': '200Gi' };
let addresses = 0;

/** A node for tests: what is scheduled on it runs in Podman. It knows as much of a kubelet as our pods need. */
export class TestKubelet {
  readonly #options: KubeletOptions;
  readonly #name: string;
  readonly #folder = mkdtempSync(path.join(tmpdir(), 'palestra-test-kubelet-'));
  readonly #podman: Api | null;
  readonly #pods = new Map<string, { run: Running; written: string; busy: boolean }>();
  readonly #closers: (() => Promise<void>)[] = [];
  #apiServer: ApiServerForPods | null = null;
  #isClosed = false;
  #loop: Promise<void> = Promise.resolve();

  private constructor(options: KubeletOptions) {
    this.#options = options;
    this.#name = options.name ?? (options.engine ? 'podman-0' : 'fake-0');
    this.#podman = options.engine && new Api({ at: { socketPath: options.engine.socket }, prefix: '/v1.41' });
  }

  /** Resolves when its node is ready. */
  static async start(options: KubeletOptions): Promise<TestKubelet> {
    const kubelet = new TestKubelet(options);
    const { port, close } = await serveLogs(options.plane, options.engine?.socket ?? null, (uid) => path.join(kubelet.#folder, uid));
    kubelet.#closers.push(close);
    if (options.engine !== null) {
      const apiServer = await serveApiServer(options.plane);
      kubelet.#apiServer = apiServer;
      kubelet.#closers.push(() => apiServer.close());
    }
    await kubelet.#register(port);
    kubelet.#loop = kubelet.#run();
    return kubelet;
  }

  /** Stops all pods without grace; they stay in the API server. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#loop;
    await Promise.all([...this.#pods.values()].map(({ run }) => run.stop(0)));
    await Promise.all(this.#closers.map((close) => close()));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #register(port: number): Promise<void> {
    const { api } = this.#options.plane;
    const labels = { 'palestra.test/runs': this.#podman ? 'podman' : 'fake', 'kubernetes.io/hostname': this.#name };
    await api.apply(`/api/v1/nodes/${this.#name}`, { apiVersion: 'v1', kind: 'Node', metadata: { name: this.#name, labels } });
    await this.#heartbeat(port);
    const timer = setInterval(() => void this.#heartbeat(port).catch(() => {}), HEARTBEAT_MS);
    this.#closers.push(async () => clearInterval(timer));
  }

  async #heartbeat(port: number): Promise<void> {
    const { api } = this.#options.plane;
    const capacity = { ...CAPACITY, ...this.#options.capacity };
    const now = new Date().toISOString();
    const versions = { kubeletVersion: 'v1.36.3', kubeProxyVersion: '', containerRuntimeVersion: 'podman://4.3.1', kernelVersion: '6' };
    await api.merge(`/api/v1/nodes/${this.#name}/status`, {
      status: {
        capacity,
        allocatable: capacity,
        addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
        conditions: [
          { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '', lastHeartbeatTime: now, lastTransitionTime: now },
        ],
        daemonEndpoints: { kubeletEndpoint: { Port: port } },
        nodeInfo: {
          ...versions,
          architecture: 'amd64',
          operatingSystem: 'linux',
          osImage: 'test',
          machineID: '',
          systemUUID: '',
          bootID: '',
        },
      },
    });
    const lease = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${this.#name}`;
    await api.apply(lease, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: this.#name },
      spec: { holderIdentity: this.#name, leaseDurationSeconds: 40, renewTime: now.replace('Z', '000Z') },
    });
  }

  async #run(): Promise<void> {
    const { api } = this.#options.plane;
    const selector = encodeURIComponent(`spec.nodeName=${this.#name}`);
    while (!this.#isClosed) {
      // While the API server is away, pods go on.
      const list = await api.get<{ items: Pod[] }>(`/api/v1/pods?fieldSelector=${selector}`).catch(() => null);
      for (const pod of list?.items ?? []) void this.#sync(pod);
      if (list !== null) this.#forget(new Set(list.items.map(({ metadata }) => metadata.uid)));
      await sleep(POLL_MS);
    }
    while ([...this.#pods.values()].some(({ busy }) => busy)) await sleep(10);
  }

  /** One at a time for a pod. */
  async #sync(pod: Pod): Promise<void> {
    const { uid, name, namespace, deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
    const known = this.#pods.get(uid) ?? { run: this.#start(pod), written: '', busy: false };
    this.#pods.set(uid, known);
    if (known.busy) return;
    known.busy = true;
    const { api } = this.#options.plane;
    const at = `/api/v1/namespaces/${namespace}/pods/${name}`;
    try {
      if (deletionTimestamp) {
        await known.run.stop(deletionGracePeriodSeconds * 1_000);
        await api.delete(at, { gracePeriodSeconds: 0, preconditions: { uid } });
        this.#pods.delete(uid);
        return;
      }
      const status = await known.run.sync();
      const written = JSON.stringify(status);
      if (written === known.written) return;
      await api.merge(`${at}/status`, { metadata: { uid }, status });
      known.written = written;
    } catch (error) {
      // It is gone, another pod has its name, or the API server is away: the next turn repeats it.
      if (isStatus(error, 404)) this.#pods.delete(uid);
    } finally {
      known.busy = false;
    }
  }

  /** Deleted without grace. */
  #forget(present: ReadonlySet<string>): void {
    for (const [uid, known] of this.#pods) {
      if (present.has(uid) || known.busy) continue;
      this.#pods.delete(uid);
      void known.run.stop(0).catch(() => {});
    }
  }

  #start(pod: Pod): Running {
    const podIP = nextAddress();
    if (this.#podman === null) return fakeRun(pod, podIP, this.#options.fakeStatus);
    const folder = path.join(this.#folder, pod.metadata.uid);
    mkdirSync(folder, { recursive: true });
    const place = { pod, api: this.#options.plane.api, folder, podIP, node: this.#name, apiServer: this.#apiServer! };
    return new PodRun(this.#podman, place, { 'palestra.dev/installation': this.#options.engine!.installation });
  }
}

/** Addresses of Podman's usual network that it does not give itself, because it counts from the beginning. */
function nextAddress(): string {
  addresses += 1;
  const offset = (process.pid * 61 + addresses) % 16_000;
  return `10.88.${128 + Math.floor(offset / 250)}.${2 + (offset % 250)}`;
}

/** Ready at once. */
function fakeRun(pod: Pod, podIP: string, fakeStatus: KubeletOptions['fakeStatus'] = () => null): Running {
  const startedAt = new Date().toISOString();
  const condition = (type: string) => ({ type, status: 'True' });
  return {
    sync: async () =>
      fakeStatus(pod) ?? {
        phase: 'Running',
        podIP,
        podIPs: [{ ip: podIP }],
        startTime: startedAt,
        conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map(condition),
        containerStatuses: pod.spec.containers.map(({ name, image }) => ({
          name,
          image,
          imageID: `${image}@sha256:${'0'.repeat(64)}`,
          ready: true,
          started: true,
          restartCount: 0,
          state: { running: { startedAt } },
        })),
      },
    stop: async () => {},
  };
}
