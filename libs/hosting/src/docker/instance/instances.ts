import { lookup } from 'node:dns/promises';
import { HostingError } from '../../provider/hosting-error.ts';
import type { RunningInstance } from '../../provider/provider.port.ts';
import { type Engine, EngineError, isStatus } from '../engine/engine.ts';
import { LABEL, labelFilter, names } from '../engine/names.ts';
import {
  type ContainerInspection,
  type ContainerSummary,
  createContainer,
  inspectContainer,
  removeContainer,
  startContainer,
  stopContainer,
} from './containers.ts';
import { exitReason } from './exit-reason.ts';
import { createGateway, type GatewayOptions, RELAY_PORT } from './gateway.ts';
import { imageUser, needsLookup } from './image-user.ts';
import { imageVolumes } from './image-volumes.ts';
import type { LogReaders } from './instance-logs.ts';
import { ensureFrontNetwork, ensureInstanceNetwork, removeNetwork } from './networks.ts';
import { settled } from './settled.ts';
import { fillSecrets, removeSecrets } from './secret-files.ts';
import { type ImageSpec, serverContainer } from './server-container.ts';

export interface InstancesOptions {
  engine: Engine;
  /** All labels carry it, so that several installations share an engine. */
  installation: string;
  /** Resolves to an image with Node.js. */
  gatewayImage(signal: AbortSignal): Promise<string>;
  /** A network of which this service is a member; null: ports of gateways are published on the engine's machine. */
  network: string | null;
  /** Addresses that are not public and that instances may reach. */
  reachable: readonly string[];
  logs: LogReaders;
}

type Part = ContainerSummary & { role: string };

const RUNNING = new Set(['running', 'paused', 'restarting']);
const NOT_STARTED = new Set(['created', 'configured', 'initialized']);
const PUBLISH_ATTEMPTS = 3;
/** In the user information of endpoints; only the password counts. */
const USER = 'palestra';

/** Containers, networks and volumes of instances. */
export class Instances {
  readonly #options: InstancesOptions;
  /** What is asked only once, by container id. */
  readonly #known = new Map<string, ContainerInspection>();

  constructor(options: InstancesOptions) {
    this.#options = options;
  }

  async list(signal: AbortSignal, id?: string): Promise<RunningInstance[]> {
    const { engine, installation } = this.#options;
    const filters = labelFilter(installation, id);
    const [containers, networks] = await Promise.all([
      engine.request<ContainerSummary[]>({ method: 'GET', path: '/containers/json', query: { all: true, filters } }, signal),
      engine.request<{ Labels?: Record<string, string> | null }[]>({ method: 'GET', path: '/networks', query: { filters } }, signal),
    ]);
    const parts = new Map<string, Part[]>();
    // A network alone is an instance too: a process was killed while it created or removed it.
    for (const { Labels } of [...networks, ...containers]) {
      const instance = Labels?.[LABEL.instance];
      if (instance) parts.set(instance, []);
    }
    for (const one of containers) {
      const instance = one.Labels[LABEL.instance];
      if (instance) parts.get(instance)!.push({ ...one, State: one.State.toLowerCase(), role: one.Labels[LABEL.role] ?? '' });
    }
    if (id === undefined) this.#forget(containers);
    return Promise.all([...parts].map(([instance, its]) => this.#view(instance, its, networks, signal)));
  }

  /** Creates what is missing and starts what was not started; leaves an ended instance as it is. */
  async ensure(spec: ImageSpec, runtime: string | null, signal: AbortSignal): Promise<RunningInstance> {
    const [found] = await this.list(signal, spec.id);
    if (found && (found.state === 'exited' || found.endpoint !== null)) return found;
    const labels = this.#labels(spec);
    const { engine, installation } = this.#options;
    const info = await engine.info(signal);
    const image = await this.#image(spec, signal);
    const volumes = imageVolumes(image.volumes);
    const [subnet, front, gatewayImage] = await Promise.all([
      ensureInstanceNetwork(engine, labels, spec.id, signal),
      this.#options.network ?? ensureFrontNetwork(engine, installation, signal),
      this.#options.gatewayImage(signal),
    ]);
    if (Object.keys(spec.secrets).length > 0) {
      await fillSecrets(engine, { id: spec.id, image: spec.artifact.image, labels, secrets: spec.secrets }, signal);
    }
    const gateway: GatewayOptions = {
      id: spec.id,
      image: gatewayImage,
      labels,
      subnet,
      front,
      publishAt: this.#options.network === null ? await this.#publishAt() : null,
      port: spec.artifact.port,
      egress: spec.egress,
      reachable: this.#options.reachable,
      lifetimeMs: null,
    };
    const startServer = async () => {
      const user = await this.#user(spec, image, labels, signal);
      await createContainer(engine, names.server(spec.id), serverContainer(info, spec, { labels, subnet, user, runtime, volumes }), signal);
      await this.#startServer(spec, signal);
    };
    await settled([startServer(), this.#startGateway(gateway, signal)]);
    const [instance] = await this.list(signal, spec.id);
    if (!instance) throw new HostingError('instance_failed', 'The instance was removed while it started.');
    return instance;
  }

  async remove(id: string, graceMs: number, signal: AbortSignal): Promise<void> {
    const { engine, installation, logs } = this.#options;
    await stopContainer(engine, names.server(id), graceMs, signal);
    await logs.ended(id);
    await removeContainer(engine, names.server(id), signal);
    const query = { all: true, filters: labelFilter(installation, id) };
    const rest = await engine.request<ContainerSummary[]>({ method: 'GET', path: '/containers/json', query }, signal);
    await settled(rest.map((one) => removeContainer(engine, one.Id, signal)));
    await settled([removeNetwork(engine, names.network(id), signal), removeSecrets(engine, id, signal)]);
  }

  #labels(spec: ImageSpec): Record<string, string> {
    return {
      [LABEL.installation]: this.#options.installation,
      [LABEL.instance]: spec.id,
      [LABEL.version]: spec.versionId,
      [LABEL.environment]: spec.environment,
    };
  }

  async #image(spec: ImageSpec, signal: AbortSignal): Promise<{ user: string; volumes: Record<string, unknown> | null }> {
    try {
      const path = `/images/${spec.artifact.image}/json`;
      const { Config } = await this.#options.engine.request<{
        Config?: { User?: string; Volumes?: Record<string, unknown> | null } | null;
      }>({ method: 'GET', path }, signal);
      return { user: Config?.User ?? '', volumes: Config?.Volumes ?? null };
    } catch (error) {
      if (!isStatus(error, 404)) throw error;
      throw new HostingError('instance_failed', `The image ${spec.artifact.image} is missing on the engine. Deploy the environment again.`);
    }
  }

  async #user(spec: ImageSpec, image: { user: string }, labels: Record<string, string>, signal: AbortSignal): Promise<string> {
    const { engine } = this.#options;
    if (!needsLookup(image.user)) return imageUser(engine, image.user, '', signal);
    const probe = `${names.server(spec.id)}-user-${Date.now()}`;
    const body = { Image: spec.artifact.image, Entrypoint: ['/never-runs'], Labels: labels, HostConfig: { NetworkMode: 'none' } };
    await createContainer(engine, probe, body, signal);
    try {
      return await imageUser(engine, image.user, probe, signal);
    } finally {
      await removeContainer(engine, probe, signal);
    }
  }

  async #startServer(spec: ImageSpec, signal: AbortSignal): Promise<void> {
    try {
      await startContainer(this.#options.engine, names.server(spec.id), signal);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      const advice = 'Its program must exist and be executable by a user other than root.';
      throw new HostingError('instance_failed', `The server could not be started: ${error.message}. ${advice}`, { cause: error });
    }
  }

  /** The engine chooses a free port, which another program may take before it is used. */
  async #startGateway(options: GatewayOptions, signal: AbortSignal): Promise<void> {
    const { engine } = this.#options;
    const name = names.gateway(options.id);
    for (let attempt = 1; ; attempt += 1) {
      await createGateway(engine, options, signal);
      try {
        return await startContainer(engine, name, signal);
      } catch (error) {
        if (
          !(error instanceof EngineError) ||
          attempt === PUBLISH_ATTEMPTS ||
          !/address already in use|port is already/i.test(error.message)
        )
          throw error;
        await removeContainer(engine, name, signal);
      }
    }
  }

  /** Another machine's engine publishes on the address by which this service reaches it. */
  async #publishAt(): Promise<string> {
    const host = await this.#options.engine.host();
    return host === null ? '127.0.0.1' : (await lookup(host, { family: 4 })).address;
  }

  async #view(
    id: string,
    parts: Part[],
    networks: { Labels?: Record<string, string> | null }[],
    signal: AbortSignal,
  ): Promise<RunningInstance> {
    const server = parts.find(({ role }) => role === 'server');
    const gateway = parts.find(({ role }) => role === 'gateway');
    const labelled = server ?? gateway ?? parts[0] ?? networks.find(({ Labels }) => Labels?.[LABEL.instance] === id);
    const view = { id, versionId: labelled?.Labels?.[LABEL.version] ?? '', endpoint: null, exit: null, startedAt: null, restarts: 0 };
    if (!server || NOT_STARTED.has(server.State)) return { ...view, state: 'starting' };
    const inspected = await this.#inspect(server, signal).catch((error: unknown) => {
      if (error instanceof EngineError) return error;
      throw error;
    });
    // The files of a container may be broken, which must not hide the others.
    if (inspected instanceof EngineError && !RUNNING.has(server.State)) {
      const reason = `The engine cannot say how the server ended: ${inspected.message}`;
      return { ...view, state: 'exited', exit: { code: null, reason } };
    }
    // Null: it was removed meanwhile.
    if (inspected === null || inspected instanceof EngineError) return { ...view, state: 'starting' };
    const startedAt = new Date(inspected.State.StartedAt);
    if (!inspected.State.Running) {
      return { ...view, state: 'exited', startedAt, exit: { code: inspected.State.ExitCode, reason: exitReason(inspected) } };
    }
    if (!gateway || NOT_STARTED.has(gateway.State)) return { ...view, startedAt, state: 'starting' };
    if (!RUNNING.has(gateway.State)) {
      return { ...view, startedAt, state: 'exited', exit: { code: null, reason: 'The gateway of the instance ended.' } };
    }
    return { ...view, startedAt, state: 'running', endpoint: await this.#endpoint(gateway) };
  }

  /** The URL of a gateway, with what it wants to see. */
  async #endpoint({ Ports, NetworkSettings, Labels }: ContainerSummary): Promise<string | null> {
    const { network, engine } = this.#options;
    const token = Labels[LABEL.token];
    const user = token === undefined ? '' : `${USER}:${token}@`;
    if (network !== null) {
      const address = NetworkSettings?.Networks?.[network]?.IPAddress;
      return address ? `http://${user}${address}:${RELAY_PORT}` : null;
    }
    const published = Ports?.find(({ PrivatePort, PublicPort }) => PrivatePort === RELAY_PORT && PublicPort)?.PublicPort;
    return published ? `http://${user}${(await engine.host()) ?? '127.0.0.1'}:${published}` : null;
  }

  /** The list has neither exit statuses nor times. A container is inspected once, until it ends. */
  async #inspect({ Id, State }: Part, signal: AbortSignal): Promise<ContainerInspection | null> {
    const known = this.#known.get(Id);
    if (known && known.State.Running === RUNNING.has(State)) return known;
    const inspected = await inspectContainer(this.#options.engine, Id, signal);
    if (inspected) this.#known.set(Id, inspected);
    return inspected;
  }

  #forget(containers: ContainerSummary[]): void {
    const present = new Set(containers.map(({ Id }) => Id));
    for (const id of this.#known.keys()) if (!present.has(id)) this.#known.delete(id);
  }
}
