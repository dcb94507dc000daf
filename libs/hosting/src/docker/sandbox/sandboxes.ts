import type { Readable } from 'node:stream';
import { HostingError } from '../../provider/hosting-error.ts';
import type {
  ExecRequest,
  ExecResult,
  RunningSandbox,
  SandboxFile,
  SandboxNetwork,
  SandboxProvider,
  SandboxSpec,
} from '../../sandbox/sandbox.port.ts';
import { readFile, statFile, writeFile } from '../../sandbox/sandbox-files.ts';
import { publicImageName } from '../build/image-name.ts';
import { ensureTagged } from '../build/image-pull.ts';
import { type Engine, EngineError, isStatus } from '../engine/engine.ts';
import { LABEL, names } from '../engine/names.ts';
import { type ContainerSummary, createContainer, removeContainer, startContainer } from '../instance/containers.ts';
import { applyRules, createGateway } from '../instance/gateway.ts';
import { ensureFrontNetwork, ensureInstanceNetwork, removeNetwork } from '../instance/networks.ts';
import { settled } from '../instance/settled.ts';
import { exec } from './exec.ts';
import { sandboxContainer, sidecarContainer } from './sandbox-container.ts';

export interface SandboxesOptions {
  engine: Engine;
  installation: string;
  /** Resolves to an image with Node.js. */
  gatewayImage(signal: AbortSignal): Promise<string>;
  /** A network of which gateways are members; null: one of the installation. */
  network: string | null;
  /** Addresses that are not public and that sandboxes may reach. */
  reachable: readonly string[];
  /** Hosts that sandboxes reach at any address, but only by plain HTTP. */
  plain: readonly string[];
}

const PULL_MS = 600_000;
const ARCHIVE_MS = 600_000;
const REMOVE_MS = 120_000;
const RULES_MS = 20_000;
const ID = /^[\w-]{1,64}$/;

/** Sandboxes in a Docker or Podman engine. Each has a network of its own, whose only way out is a gateway. */
export class DockerSandboxes implements SandboxProvider {
  readonly #options: SandboxesOptions;

  constructor(options: SandboxesOptions) {
    this.#options = options;
  }

  create(spec: SandboxSpec, signal: AbortSignal): Promise<void> {
    if (!ID.test(spec.id)) throw new HostingError('instance_failed', `"${spec.id}" cannot be the id of a sandbox.`);
    return this.#explained(async () => {
      try {
        await this.#create(spec, signal);
      } catch (error) {
        // What is left is found by its label, and removed later.
        await this.remove(spec.id, AbortSignal.timeout(REMOVE_MS)).catch(() => {});
        throw error;
      }
    });
  }

  exec(id: string, request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    return this.#explained(() => exec(this.#options.engine, names.server(id), request, signal));
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

  async upload(id: string, folder: string, archive: Readable | Buffer, signal: AbortSignal): Promise<void> {
    const request = { method: 'PUT', path: `/containers/${names.server(id)}/archive`, query: { path: folder }, archive } as const;
    await this.#explained(() => this.#options.engine.request({ ...request, deadlineMs: ARCHIVE_MS }, signal));
  }

  download(id: string, path: string, signal: AbortSignal): Promise<Readable> {
    const request = { method: 'GET', path: `/containers/${names.server(id)}/archive`, query: { path } } as const;
    return this.#explained(() => this.#options.engine.stream(request, signal));
  }

  setNetwork(id: string, network: SandboxNetwork, signal: AbortSignal): Promise<void> {
    return this.#explained(async () => {
      const parts = await this.#containers(signal, id);
      if (parts.length === 0) throw new HostingError('sandbox_lost', 'There is no such sandbox.');
      if (!parts.some(({ Labels }) => Labels[LABEL.role] === 'gateway')) {
        throw new HostingError('hosting_unsupported', 'The sandbox was created without a network, and cannot get one.');
      }
      await this.#applyRules(id, network, signal);
    });
  }

  remove(id: string, signal: AbortSignal): Promise<void> {
    return this.#explained(async () => {
      const { engine } = this.#options;
      const all = await this.#containers(signal, id);
      // Sidecars are in the network of the sandbox, so they end before it.
      const isServer = ({ Labels }: ContainerSummary) => Labels[LABEL.role] === 'server';
      await settled(all.filter((one) => !isServer(one)).map((one) => removeContainer(engine, one.Id, signal)));
      await settled(all.filter(isServer).map((one) => removeContainer(engine, one.Id, signal)));
      await removeNetwork(engine, names.network(id), signal);
    });
  }

  list(signal: AbortSignal): Promise<RunningSandbox[]> {
    return this.#explained(async () => {
      const { engine } = this.#options;
      const networks = await engine.request<{ Labels?: Record<string, string> | null }[]>(
        { method: 'GET', path: '/networks', query: { filters: this.#filter() } },
        signal,
      );
      const found = new Map<string, RunningSandbox>();
      // A network alone is a sandbox too: a process was killed while it created or removed it.
      for (const { Labels } of networks) add(found, Labels?.[LABEL.sandbox], false);
      for (const { Labels, State } of await this.#containers(signal)) {
        add(found, Labels[LABEL.sandbox], Labels[LABEL.role] === 'server' && State.toLowerCase() === 'running');
      }
      return [...found.values()];
    });
  }

  async #create(spec: SandboxSpec, signal: AbortSignal): Promise<void> {
    const { engine, installation } = this.#options;
    const labels = { [LABEL.installation]: installation, [LABEL.sandbox]: spec.id, [LABEL.environment]: spec.environment };
    const info = await engine.info(signal);
    const [image, ...sidecarImages] = await Promise.all([spec, ...spec.sidecars].map((one) => this.#image(one.image, signal)));
    const subnet = await ensureInstanceNetwork(engine, labels, spec.id, signal);
    const startServer = async () => {
      await createContainer(engine, names.server(spec.id), sandboxContainer(info, spec, { labels, subnet, image: image! }), signal);
      await this.#start(names.server(spec.id), `The sandbox of ${spec.image}`, 'Its image must have /bin/sh.', signal);
      await settled(
        spec.sidecars.map(async (sidecar, index) => {
          const name = names.sidecar(spec.id, index);
          const body = sidecarContainer(info, spec, sidecar, { labels, subnet, image: sidecarImages[index]! });
          await createContainer(engine, name, body, signal);
          await this.#start(name, `The sidecar "${sidecar.name}"`, 'Check its command.', signal);
        }),
      );
    };
    const startGateway = async () => {
      if (spec.network.kind !== 'none') await this.#startGateway(spec.id, labels, spec.network, signal);
    };
    await settled([startServer(), startGateway()]);
  }

  /** Id of an image, which is pulled when the engine does not have it. */
  async #image(name: string, signal: AbortSignal): Promise<string> {
    const { engine, installation } = this.#options;
    const stop = AbortSignal.any([signal, AbortSignal.timeout(PULL_MS)]);
    return (await ensureTagged(engine, installation, publicImageName(name), () => {}, stop)).Id;
  }

  async #startGateway(id: string, labels: Record<string, string>, network: SandboxNetwork, signal: AbortSignal): Promise<void> {
    const { engine, installation, reachable, plain } = this.#options;
    const [subnet, front, image] = await Promise.all([
      ensureInstanceNetwork(engine, labels, id, signal),
      this.#options.network ?? ensureFrontNetwork(engine, installation, signal),
      this.#options.gatewayImage(signal),
    ]);
    const options = { id, image, labels, subnet, front, publishAt: null, port: null, egress: network, reachable, plain, lifetimeMs: null };
    await createGateway(engine, options, signal);
    await startContainer(engine, names.gateway(id), signal);
    // Waits until it listens.
    await this.#applyRules(id, network, signal);
  }

  async #applyRules(id: string, network: SandboxNetwork, signal: AbortSignal): Promise<void> {
    const request = { ...applyRules(network), bare: true, timeoutMs: RULES_MS, maxBytes: 1_000 };
    const { exitCode, output } = await exec(this.#options.engine, names.gateway(id), request, signal);
    if (exitCode === 0) return;
    throw new HostingError(
      'instance_failed',
      `The network rules could not be applied: ${output.toString().trim() || `status ${exitCode}`}`,
    );
  }

  async #start(name: string, subject: string, advice: string, signal: AbortSignal): Promise<void> {
    try {
      await startContainer(this.#options.engine, name, signal);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      throw new HostingError('instance_failed', `${subject} could not be started: ${error.message}. ${advice}`, { cause: error });
    }
  }

  #containers(signal: AbortSignal, id?: string): Promise<ContainerSummary[]> {
    const query = { all: true, filters: this.#filter(id) };
    return this.#options.engine.request<ContainerSummary[]>({ method: 'GET', path: '/containers/json', query }, signal);
  }

  #filter(id?: string) {
    const sandbox = id === undefined ? LABEL.sandbox : `${LABEL.sandbox}=${id}`;
    return { label: [`${LABEL.installation}=${this.#options.installation}`, sandbox] };
  }

  /** What the engine refuses without a better explanation. */
  async #explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      const code = isStatus(error, 404) ? 'sandbox_lost' : 'instance_failed';
      throw new HostingError(code, `The engine refused (${error.status}): ${error.message}`, { cause: error });
    }
  }
}

function add(found: Map<string, RunningSandbox>, id: string | undefined, running: boolean): void {
  if (id !== undefined) found.set(id, { id, running: running || found.get(id)?.running === true });
}
