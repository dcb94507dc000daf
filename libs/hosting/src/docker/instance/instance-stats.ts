import type { InstanceStats } from '../../provider/provider.port.ts';
import { type Engine, EngineError } from '../engine/engine.ts';
import { names } from '../engine/names.ts';
import { inspectContainer } from './containers.ts';

interface ContainerStats {
  /** Of the sample. */
  read?: string;
  /** Nanoseconds that all processes together used since the start. */
  cpu_stats?: { cpu_usage?: { total_usage?: number } };
  /** `inactive_file`: cache that the kernel gives back when it is needed. */
  memory_stats?: { usage?: number; stats?: Record<string, number> | null };
  pids_stats?: { current?: number };
}

/** Samples of what instances use. The use of processors is that since the sample before, at first that since the start. */
export class StatsReader {
  readonly #engine: Engine;
  readonly #last = new Map<string, { nanoseconds: number; at: number }>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  forget(id: string): void {
    this.#last.delete(id);
  }

  /** Null if the instance does not run. */
  async read(id: string, signal: AbortSignal): Promise<InstanceStats | null> {
    const before = this.#last.get(id) ?? (await this.#start(id, signal));
    const sample = before && (await this.#sample(id, signal));
    const nanoseconds = sample?.cpu_stats?.cpu_usage?.total_usage;
    const usage = sample?.memory_stats?.usage;
    // A stopped container has used nothing.
    if (!before || !nanoseconds || usage === undefined) {
      this.forget(id);
      return null;
    }
    const at = sample?.read ? new Date(sample.read).getTime() : Date.now();
    this.#last.set(id, { nanoseconds, at });
    const { inactive_file: v2, total_inactive_file: v1 } = sample?.memory_stats?.stats ?? {};
    return {
      cpus: Math.max(0, nanoseconds - before.nanoseconds) / (Math.max(1, at - before.at) * 1e6),
      memoryMb: Math.max(0, usage - (v1 ?? v2 ?? 0)) / 2 ** 20,
      pids: sample?.pids_stats?.current ?? null,
    };
  }

  async #start(id: string, signal: AbortSignal) {
    const state = (await inspectContainer(this.#engine, names.server(id), signal))?.State;
    return state?.Running ? { nanoseconds: 0, at: new Date(state.StartedAt).getTime() } : null;
  }

  async #sample(id: string, signal: AbortSignal): Promise<ContainerStats | null> {
    try {
      const path = `/containers/${names.server(id)}/stats`;
      return await this.#engine.request<ContainerStats>({ method: 'GET', path, query: { stream: false, 'one-shot': true } }, signal);
    } catch (error) {
      // Removed meanwhile, or an engine that cannot measure (Podman without root and with the first version of cgroups).
      if (error instanceof EngineError) return null;
      throw error;
    }
  }
}
