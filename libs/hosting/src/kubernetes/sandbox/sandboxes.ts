import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { publicImageName } from '../../docker/build/image-name.ts';
import { settled } from '../../docker/instance/settled.ts';
import { HostingError } from '../../provider/hosting-error.ts';
import { readFile, statFile, writeFile } from '../../sandbox/sandbox-files.ts';
import type {
  ExecRequest,
  ExecResult,
  RunningSandbox,
  SandboxFile,
  SandboxNetwork,
  SandboxProvider,
  SandboxSpec,
} from '../../sandbox/sandbox.port.ts';
import { ClusterRefusal, isRefusal } from '../cluster/cluster.ts';
import { LABEL, names, selector } from '../cluster/names.ts';
import type { Pod } from '../instance/pod.ts';
import { pack, unpack } from './archives.ts';
import type { ContainerTarget } from './container-run.ts';
import { exec } from './exec.ts';
import { SANDBOX_CONTAINER } from './sandbox-pod.ts';
import { applyGatewayRules, startSandbox, type StarterOptions } from './sandbox-starter.ts';
import { isRunning, podPath } from './sandbox-state.ts';

export interface SandboxesOptions extends StarterOptions {
  enforcesNetworkPolicy: boolean;
  /** Prefix of images that no sandbox may use: those of environments; null: there are none. */
  registry: string | null;
}

const REMOVE_MS = 120_000;
const POLL_MS = 200;
/** Part of the names of pods, and the value of a label. */
const ID = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Sandboxes as pods: docs/adr/0044-sandboxes-are-sessions.md. A sandbox with rules has a second pod, its gateway. */
export class KubernetesSandboxes implements SandboxProvider {
  readonly #options: SandboxesOptions;

  constructor(options: SandboxesOptions) {
    this.#options = options;
  }

  create(spec: SandboxSpec, signal: AbortSignal): Promise<void> {
    return explained(async () => {
      if (!ID.test(spec.id)) throw new HostingError('instance_failed', `"${spec.id}" cannot be the id of a sandbox.`);
      this.#check(spec.network);
      const images = [spec, ...spec.sidecars].map(({ image }) => this.#imageName(image));
      try {
        await startSandbox(spec, images, this.#options, signal);
      } catch (error) {
        // What is left is found by its label, and removed later.
        await this.remove(spec.id, AbortSignal.timeout(REMOVE_MS)).catch(() => {});
        throw error;
      }
    });
  }

  exec(id: string, request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    return explained(() => exec(this.#sandbox(id), request, signal));
  }

  stat(id: string, path: string, signal: AbortSignal): Promise<SandboxFile | null> {
    return statFile((request) => this.exec(id, request, signal), path);
  }

  read(id: string, path: string, range: { offset: number; length: number }, signal: AbortSignal): Promise<Buffer> {
    return readFile((request) => this.exec(id, request, signal), path, range);
  }

  write(id: string, path: string, content: Buffer, signal: AbortSignal): Promise<void> {
    return writeFile((request) => this.exec(id, request, signal), path, content);
  }

  upload(id: string, folder: string, archive: Readable | Buffer, signal: AbortSignal): Promise<void> {
    return explained(() => unpack(this.#sandbox(id), folder, archive, signal));
  }

  async download(id: string, path: string, signal: AbortSignal): Promise<Readable> {
    if ((await this.stat(id, path, signal)) === null) throw new HostingError('instance_failed', `There is no ${path} in the sandbox.`);
    return pack(this.#sandbox(id), path, signal);
  }

  setNetwork(id: string, network: SandboxNetwork, signal: AbortSignal): Promise<void> {
    return explained(async () => {
      const pods = await this.#pods(signal, id);
      if (!pods.some((pod) => roleOf(pod) === 'sandbox')) throw new HostingError('sandbox_lost', 'There is no such sandbox.');
      if (!pods.some((pod) => roleOf(pod) === 'gateway')) {
        throw new HostingError('hosting_unsupported', 'The sandbox was created without a gateway, and cannot get one.');
      }
      await applyGatewayRules(this.#options.cluster, id, network, signal);
    });
  }

  remove(id: string, signal: AbortSignal): Promise<void> {
    return explained(async () => {
      const { cluster } = this.#options;
      const pods = await this.#pods(signal, id);
      await settled(
        pods.map(async ({ metadata: { name, uid } }) => {
          // Without grace the API server would forget the pod at once, and its containers might go on.
          const body = { gracePeriodSeconds: 1, preconditions: { uid } };
          try {
            await cluster.request({ method: 'DELETE', path: podPath(cluster, name), body }, signal);
          } catch (error) {
            if (!isRefusal(error, 404, 409)) throw error;
          }
        }),
      );
      while ((await this.#pods(signal, id)).length > 0) await sleep(POLL_MS, undefined, { signal });
    });
  }

  list(signal: AbortSignal): Promise<RunningSandbox[]> {
    return explained(async () => {
      const found = new Map<string, boolean>();
      for (const pod of await this.#pods(signal)) {
        const id = pod.metadata.labels?.[LABEL.sandbox] ?? '';
        // A gateway alone is a sandbox too: a process was killed while it created or removed it.
        found.set(id, found.get(id) === true || (roleOf(pod) === 'sandbox' && isRunning(pod, SANDBOX_CONTAINER)));
      }
      return [...found].map(([id, running]) => ({ id, running }));
    });
  }

  /** Throws `hosting_unsupported` for what only a network plugin enforces of which the operator has promised nothing. */
  #check({ kind }: SandboxNetwork): void {
    if (kind === 'open' || this.#options.enforcesNetworkPolicy) return;
    const wanted = kind === 'none' ? 'A sandbox without a network' : 'A sandbox with rules for its network';
    throw new HostingError(
      'hosting_unsupported',
      `${wanted} needs a cluster that enforces NetworkPolicy. Its operator says so with PALESTRA_KUBERNETES_NETWORK_POLICY=1.`,
    );
  }

  /** The full name. Nodes keep the images of all environments, so none of them is for sandboxes. */
  #imageName(name: string): string {
    const full = publicImageName(name);
    const { registry } = this.#options;
    if (registry === null || !full.toLowerCase().startsWith(`${registry}/`)) return full;
    throw new HostingError('source_invalid', `${name} is in the registry of this server, which is for its own builds.`);
  }

  #sandbox(id: string): ContainerTarget {
    return { cluster: this.#options.cluster, pod: names.sandbox(id), container: SANDBOX_CONTAINER };
  }

  /** `id`: undefined for those of all sandboxes. */
  #pods(signal: AbortSignal, id?: string): Promise<Pod[]> {
    const { cluster, installation } = this.#options;
    const sandbox = id === undefined ? LABEL.sandbox : `${LABEL.sandbox}=${id}`;
    const labels = `${selector({ [LABEL.installation]: installation })},${sandbox}`;
    return cluster.list<Pod>(`/api/v1/namespaces/${cluster.namespace}/pods`, labels, signal);
  }
}

const roleOf = ({ metadata }: Pod): string | undefined => metadata.labels?.[LABEL.role];

/** What the cluster refuses without a better explanation. */
async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ClusterRefusal)) throw error;
    throw new HostingError('instance_failed', `The cluster refused (${error.status}): ${error.message}`, { cause: error });
  }
}
