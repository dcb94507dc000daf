import { newUuid } from '@palestra/kit';
import { type Engine, EngineError } from '../docker/engine/engine.ts';
import { LABEL, labelFilter, names } from '../docker/engine/names.ts';
import {
  type ContainerSummary,
  createContainer,
  inspectContainer,
  removeContainer,
  startContainer,
} from '../docker/instance/containers.ts';
import { createGateway, proxyVariables } from '../docker/instance/gateway.ts';
import { isolation } from '../docker/instance/isolation.ts';
import { ensureFrontNetwork, ensureInstanceNetwork, removeNetwork } from '../docker/instance/networks.ts';
import { settled } from '../docker/instance/settled.ts';
import { CAPABILITIES } from '../sandbox/sandbox-program.ts';
import { HostingError } from '../provider/hosting-error.ts';
import type { Egress, Resources } from '../provider/provider.port.ts';
import { TaskContainer } from './task-container.ts';

export interface TaskContainersOptions {
  engine: Engine;
  installation: string;
  /** The instance to which they belong; null: they belong to a build. */
  instance: string | null;
  /** Resolves to an image with Node.js, for gateways. */
  gatewayImage(signal: AbortSignal): Promise<string>;
  reachable: readonly string[];
  /** An OCI runtime; null: the engine's default. */
  runtime: string | null;
}

export interface TaskContainerSpec {
  /** Id of an image. */
  image: string;
  resources: Resources;
  egress: Egress;
  variables: Readonly<Record<string, string>>;
  workdir: string | null;
}

/** A container of a build ends by itself, when the service that made it was killed. */
const BUILD_SECONDS = 86_400;
const CLEAN_MS = 60_000;

/** Containers of tasks. Their users and programs are those of the image, so they may be root, and can write everywhere. */
export class TaskContainers {
  readonly #options: TaskContainersOptions;

  constructor(options: TaskContainersOptions) {
    this.#options = options;
  }

  /** Rejects with `HostingError` when the image cannot run. */
  async start(spec: TaskContainerSpec, signal: AbortSignal): Promise<TaskContainer> {
    const { engine, installation, instance, reachable } = this.#options;
    const id = `task-${newUuid()}`;
    const name = names.server(id);
    const labels = {
      [LABEL.installation]: installation,
      [LABEL.role]: instance === null ? 'build' : 'task',
      ...(instance !== null && { [LABEL.instance]: instance }),
    };
    const hasNetwork = spec.egress.kind !== 'none';
    const container = new TaskContainer(engine, name, async () => {
      if (hasNetwork) await this.#removeNetwork(id);
    });
    try {
      const info = await engine.info(signal);
      const subnet = hasNetwork ? await ensureInstanceNetwork(engine, labels, id, signal) : null;
      if (subnet !== null) {
        const [front, image] = await Promise.all([ensureFrontNetwork(engine, installation, signal), this.#options.gatewayImage(signal)]);
        const lifetimeMs = instance === null ? BUILD_SECONDS * 1_000 : null;
        const gateway = { id, image, labels, subnet, front, publishAt: null, port: null, egress: spec.egress, reachable, lifetimeMs };
        await createGateway(engine, gateway, signal);
        await startContainer(engine, names.gateway(id), signal);
      }
      const variables = { ...(subnet !== null && proxyVariables(subnet.gateway)), ...spec.variables };
      const body = {
        Image: spec.image,
        // The image's own ENTRYPOINT runs, as with Harbor.
        Cmd: ['sh', '-c', `sleep ${instance === null ? BUILD_SECONDS : 'infinity'}`],
        Env: Object.entries(variables).map(([key, value]) => `${key}=${value}`),
        Labels: labels,
        Healthcheck: { Test: ['NONE'] },
        ...(spec.workdir !== null && { WorkingDir: spec.workdir }),
        HostConfig: {
          ...isolation(info, spec.resources),
          ReadonlyRootfs: false,
          Tmpfs: {},
          CapAdd: CAPABILITIES,
          ...(this.#options.runtime !== null && { Runtime: this.#options.runtime }),
          NetworkMode: subnet === null ? 'none' : names.network(id),
          ...(subnet !== null && { Dns: ['127.0.0.1'] }),
        },
        ...(subnet !== null && {
          NetworkingConfig: { EndpointsConfig: { [names.network(id)]: { IPAMConfig: { IPv4Address: subnet.server } } } },
        }),
      };
      await createContainer(engine, name, body, signal);
      await startContainer(engine, name, signal);
      const { State: state } = (await inspectContainer(engine, name, signal)) ?? { State: null };
      if (state?.Running !== true)
        throw new HostingError(
          'instance_failed',
          `The container of the task ended at once (status ${state?.ExitCode}). It needs sh and sleep.`,
        );
      return container;
    } catch (error) {
      await container.remove().catch(() => {});
      if (!(error instanceof EngineError)) throw error;
      throw new HostingError('instance_failed', `The container of the task could not be started: ${error.message}`, { cause: error });
    }
  }

  async #removeNetwork(id: string): Promise<void> {
    const signal = AbortSignal.timeout(CLEAN_MS);
    await removeContainer(this.#options.engine, names.gateway(id), signal);
    await removeNetwork(this.#options.engine, names.network(id), signal);
  }
}

/** Removes containers and networks of an instance, also those of a process that was killed. */
export async function removeTaskContainers(engine: Engine, installation: string, instance: string, signal: AbortSignal): Promise<void> {
  const filters = labelFilter(installation, instance);
  const containers = await engine.request<ContainerSummary[]>(
    { method: 'GET', path: '/containers/json', query: { all: true, filters } },
    signal,
  );
  await settled(containers.map(({ Id }) => removeContainer(engine, Id, signal)));
  const networks = await engine.request<{ Name: string }[]>({ method: 'GET', path: '/networks', query: { filters } }, signal);
  await settled(networks.map(({ Name }) => removeNetwork(engine, Name, signal)));
}
