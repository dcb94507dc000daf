import { type Engine, EngineError, isStatus } from '../engine/engine.ts';

/** Creating and starting wait for the disk. */
const SLOW_MS = 120_000;

export interface ContainerInspection {
  Id: string;
  Image: string;
  State: {
    Status: string;
    Running: boolean;
    /** On the engine's machine; 0 if it does not run. */
    Pid: number;
    ExitCode: number;
    OOMKilled: boolean;
    Error?: string;
    StartedAt: string;
  };
  HostConfig: { Memory: number };
  NetworkSettings?: { Networks?: Record<string, object> | null };
}

export interface ContainerSummary {
  Id: string;
  Labels: Record<string, string>;
  /** `created`, `running`, `exited` and others. */
  State: string;
  Ports?: { PrivatePort: number; PublicPort?: number; IP?: string }[] | null;
  NetworkSettings?: { Networks?: Record<string, { IPAddress?: string }> | null };
}

const at = (name: string, action = '') => `/containers/${encodeURIComponent(name)}${action}`;

/** Null if there is none. */
export async function inspectContainer(engine: Engine, name: string, signal: AbortSignal): Promise<ContainerInspection | null> {
  try {
    return await engine.request<ContainerInspection>({ method: 'GET', path: at(name, '/json') }, signal);
  } catch (error) {
    if (isStatus(error, 404)) return null;
    throw error;
  }
}

/** Creates a container unless one has its name. */
export async function createContainer(engine: Engine, name: string, body: object, signal: AbortSignal): Promise<void> {
  try {
    await engine.request({ method: 'POST', path: '/containers/create', query: { name }, body, deadlineMs: SLOW_MS }, signal);
  } catch (error) {
    if (!(error instanceof EngineError) || (await inspectContainer(engine, name, signal)) === null) throw error;
  }
}

/** Joins a container with another network, unless it is a member. */
export async function connectContainer(engine: Engine, name: string, network: string, address: string, signal: AbortSignal): Promise<void> {
  const body = { Container: name, EndpointConfig: { IPAMConfig: { IPv4Address: address } } };
  try {
    await engine.request({ method: 'POST', path: `/networks/${encodeURIComponent(network)}/connect`, body }, signal);
  } catch (error) {
    const found = error instanceof EngineError ? await inspectContainer(engine, name, signal) : null;
    if (found?.NetworkSettings?.Networks?.[network] === undefined) throw error;
  }
}

export async function startContainer(engine: Engine, name: string, signal: AbortSignal): Promise<void> {
  await engine.request({ method: 'POST', path: at(name, '/start'), deadlineMs: SLOW_MS }, signal);
}

/** SIGTERM, after the grace period SIGKILL; without a grace period SIGKILL at once. Resolves also if there is none, or if it does not run. */
export async function stopContainer(engine: Engine, name: string, graceMs: number, signal: AbortSignal): Promise<void> {
  const seconds = Math.ceil(graceMs / 1_000);
  const stop = { method: 'POST', path: at(name, '/stop'), query: { t: seconds }, deadlineMs: graceMs + SLOW_MS } as const;
  const kill = { method: 'POST', path: at(name, '/kill') } as const;
  try {
    await engine.request(seconds > 0 ? stop : kill, signal);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
  }
}

/** Removes it with its anonymous volumes, also while it runs. Resolves when it is gone, also if there is none. */
export async function removeContainer(engine: Engine, name: string, signal: AbortSignal): Promise<void> {
  const remove = { method: 'DELETE', path: at(name), query: { force: true, v: true }, deadlineMs: SLOW_MS } as const;
  const deadline = Date.now() + SLOW_MS;
  for (;;) {
    try {
      await engine.request(remove, signal);
      return;
    } catch (error) {
      if (isStatus(error, 404)) return;
      // Another process is removing it, or the engine is still stopping it.
      if (!isStatus(error, 409, 500) || Date.now() > deadline) throw error;
    }
    if ((await inspectContainer(engine, name, signal)) === null) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
