import type { Engine } from '../docker/engine/engine.ts';
import { ensureImage } from '../docker/build/image-pull.ts';
import { HostingError } from '../provider/hosting-error.ts';
import type { Egress, Resources } from '../provider/provider.port.ts';
import { egressOfTask } from './task-egress.ts';
import type { TaskContainer } from './task-container.ts';
import { TaskContainers } from './task-containers.ts';
import { limitsOf } from './task-limits.ts';
import type { BuiltTask } from './trial.ts';
import { resolveVariables } from './variables.ts';

/** How containers of tasks run: settings of the environment, and of the provider. Can be written as JSON. */
export interface HarborRun {
  installation: string;
  /** Null: a build. */
  instance: string | null;
  resources: Resources;
  egress: Egress;
  /** An OCI runtime; null: the engine's default. */
  runtime: string | null;
  /** Of gateways. */
  nodeImage: string;
  reachable: readonly string[];
}

const PULL_MS = 600_000;

/** Starts containers of tasks. `known`: secrets and variables of the environment. */
export function taskStarter(engine: Engine, run: HarborRun, known: Readonly<Record<string, string>>) {
  const { installation, instance, reachable, runtime, resources } = run;
  const gatewayImage = (signal: AbortSignal) => ensureImage(engine, run.nodeImage, PULL_MS, signal);
  const containers = new TaskContainers({ engine, installation, instance, reachable, runtime, gatewayImage });
  return async (task: BuiltTask, signal: AbortSignal): Promise<TaskContainer> => {
    const { values: variables, missing } = resolveVariables(task.variables, known);
    if (missing.length > 0) throw missingVariables(task.id, missing);
    return containers.start(
      {
        image: task.imageId,
        resources: limitsOf(task, resources),
        egress: egressOfTask(task.network, run.egress),
        variables,
        workdir: task.workdir,
      },
      signal,
    );
  };
}

export const missingVariables = (id: string, names: readonly string[]): HostingError =>
  new HostingError(
    'source_invalid',
    `${id}/task.toml needs ${[...new Set(names)].join(', ')}. Set it as a secret of the environment: palestra env secrets set ${names[0]}`,
  );
