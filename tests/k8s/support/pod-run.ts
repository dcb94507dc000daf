import { readFileSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Api, isStatus } from './api.ts';
import { NotStarted, type PodContainer } from './pod.ts';
import { containerName, createContainer, messageFile } from './pod-container.ts';
import { makeVolumes, type PodPlace } from './pod-files.ts';
import { answers, execute } from './pod-probe.ts';
import { conditions, type ContainerView, phaseOf, statusOf } from './pod-status.ts';

const RETRY_MS = 1_000;
const LONGEST_BACKOFF_MS = 10_000;

interface Probed {
  started: boolean;
  ready: boolean;
  failures: number;
  nextAt: number;
}

/** One pod, whose containers Podman runs. */
export class PodRun {
  readonly #place: PodPlace;
  readonly #podman: Api;
  readonly #labels: Record<string, string>;
  readonly #views = new Map<string, ContainerView>();
  readonly #probed = new Map<string, Probed>();
  #bringingUp: Promise<void> | null = null;
  #isStopping = false;

  constructor(podman: Api, place: PodPlace, labels: Record<string, string>) {
    this.#podman = podman;
    this.#place = place;
    this.#labels = labels;
  }

  /** Starts what should run, and returns the status of the pod. */
  async sync(): Promise<object> {
    const { pod, podIP } = this.#place;
    this.#bringingUp ??= this.#bringUp().catch((error: unknown) => this.#fail(error));
    for (const view of this.#all()) if (view.id !== null) await this.#look(view);
    const inits = this.#viewsOf(pod.spec.initContainers);
    const mains = this.#viewsOf(pod.spec.containers);
    const phase = phaseOf(pod, inits, mains);
    const isReady = phase === 'Running' && mains.every(({ ready }) => ready);
    const hasStarted = mains.some(({ id }) => id !== null);
    return {
      phase,
      hostIP: '127.0.0.1',
      ...(hasStarted && phase === 'Running' && { podIP, podIPs: [{ ip: podIP }] }),
      startTime: pod.status?.startTime ?? new Date().toISOString(),
      conditions: conditions(isReady, hasStarted),
      initContainerStatuses: inits.map(statusOf),
      containerStatuses: mains.map(statusOf),
    };
  }

  /** SIGTERM, after the grace period SIGKILL; then nothing of it is left. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    await this.#bringingUp;
    const running = this.#all().filter(({ id, state }) => id !== null && state === 'running');
    await Promise.all(running.map((view) => this.#end(view, graceMs)));
    for (const { id } of this.#all().toReversed())
      if (id !== null) await this.#podman.delete(`/containers/${id}?force=true&v=true`).catch(() => {});
    rmSync(this.#place.folder, { recursive: true, force: true });
  }

  #all(): ContainerView[] {
    return [...this.#views.values()];
  }

  #viewsOf(containers: readonly PodContainer[] = []): ContainerView[] {
    return containers.map((spec) => {
      const view = this.#views.get(spec.name) ?? {
        spec,
        id: null,
        imageID: '',
        state: 'waiting' as const,
        reason: 'ContainerCreating',
        message: '',
        ready: false,
        started: false,
        restarts: 0,
        startedAt: null,
        finishedAt: null,
        exitCode: null,
        oomKilled: false,
        retryAt: 0,
      };
      this.#views.set(spec.name, view);
      return view;
    });
  }

  async #bringUp(): Promise<void> {
    const { pod } = this.#place;
    const inits = this.#viewsOf(pod.spec.initContainers);
    const mains = this.#viewsOf(pod.spec.containers);
    const volumes = await this.#until(mains, () => makeVolumes(this.#place));
    if (volumes === null) return;
    for (const view of inits) {
      if (!(await this.#start(view, volumes, null))) return;
      while (!this.#isStopping && !(view.state === 'terminated' && view.exitCode === 0)) {
        if (view.state === 'terminated' && pod.spec.restartPolicy === 'Never') return;
        await sleep(50);
      }
      if (this.#isStopping) return;
      // The address of the pod is free for the next one.
      await this.#podman.delete(`/containers/${view.id}?force=true`);
      view.id = null;
    }
    let network: string | null = null;
    for (const view of mains) {
      if (!(await this.#start(view, volumes, network))) return;
      network ??= view.id;
    }
  }

  /** False if the pod stops before. */
  async #start(view: ContainerView, volumes: ReadonlyMap<string, string>, network: string | null): Promise<boolean> {
    const name = containerName(this.#place.pod.metadata.uid, view.spec.name);
    const options = { ...this.#place, labels: this.#labels, volumes, network };
    const imageID = await this.#until([view], () => createContainer(this.#podman, view.spec, options));
    if (imageID === null) return false;
    view.imageID = imageID;
    try {
      await this.#podman.post(`/containers/${name}/start`);
      view.id = name;
    } catch (error) {
      Object.assign(view, { state: 'terminated', exitCode: 128, reason: 'StartError', message: (error as Error).message, id: name });
      const now = new Date().toISOString();
      // A pod that is not started again stays as it ended.
      const isOver = this.#place.pod.spec.restartPolicy === 'Never';
      Object.assign(view, { startedAt: now, finishedAt: now, retryAt: isOver ? Number.POSITIVE_INFINITY : 0 });
      return false;
    }
    await this.#look(view);
    return true;
  }

  /** Repeats what waits for something, such as an image or a Secret; null when the pod stops. */
  async #until<T>(views: readonly ContainerView[], work: () => Promise<T>): Promise<T | null> {
    while (!this.#isStopping) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof NotStarted)) throw error;
        for (const view of views) Object.assign(view, { reason: error.reason, message: error.message });
        await sleep(RETRY_MS);
      }
    }
    return null;
  }

  #fail(error: unknown): void {
    if (this.#isStopping) return;
    for (const view of this.#all()) Object.assign(view, { reason: 'CreateContainerError', message: String(error) });
    this.#bringingUp = null;
  }

  async #look(view: ContainerView): Promise<void> {
    // It has ended for good, or waits for its next start.
    if (view.finishedAt !== null && Date.now() < view.retryAt) return;
    const found = await this.#podman.find(`/containers/${view.id}/json`);
    if (found === null || this.#isStopping) return;
    const { Running, StartedAt, FinishedAt, ExitCode, OOMKilled } = found.State;
    if (Running) {
      Object.assign(view, { state: 'running', startedAt: StartedAt, finishedAt: null });
      return this.#probe(view);
    }
    if (view.finishedAt === null) await this.#ended(view, { StartedAt, FinishedAt, ExitCode, OOMKilled });
    else if (view.retryAt !== Number.POSITIVE_INFINITY) {
      this.#probed.delete(view.spec.name);
      await this.#podman.post(`/containers/${view.id}/start`).catch(() => {});
      view.restarts += 1;
      view.finishedAt = null;
    }
  }

  async #ended(view: ContainerView, state: { StartedAt: string; FinishedAt: string; ExitCode: number; OOMKilled: boolean }): Promise<void> {
    const { restartPolicy = 'Always', initContainers = [] } = this.#place.pod.spec;
    const isInit = initContainers.some(({ name }) => name === view.spec.name);
    const again = state.ExitCode === 0 ? restartPolicy === 'Always' && !isInit : restartPolicy !== 'Never';
    Object.assign(view, {
      ready: false,
      state: again ? 'waiting' : 'terminated',
      reason: again ? 'CrashLoopBackOff' : '',
      message: again
        ? `back-off restarting failed container ${view.spec.name}`
        : readFileSync(messageFile(this.#place, view.spec.name), 'utf8'),
      startedAt: state.StartedAt,
      finishedAt: state.FinishedAt,
      exitCode: state.ExitCode,
      // The kernel's first version of cgroups does not tell Podman; a real kubelet knows.
      oomKilled: state.OOMKilled,
      retryAt: again ? Date.now() + Math.min(500 * 2 ** view.restarts, LONGEST_BACKOFF_MS) : Number.POSITIVE_INFINITY,
    });
  }

  async #probe(view: ContainerView): Promise<void> {
    const { startupProbe, readinessProbe, livenessProbe } = view.spec;
    const probed = this.#probed.get(view.spec.name) ?? { started: !startupProbe, ready: false, failures: 0, nextAt: 0 };
    this.#probed.set(view.spec.name, probed);
    const probe = probed.started ? (readinessProbe ?? livenessProbe) : startupProbe;
    if (probe === undefined) probed.ready = true;
    else if (Date.now() >= probed.nextAt) {
      const does = await answers(this.#podman, view.id!, view.spec, probe, this.#place.podIP);
      probed.nextAt = Date.now() + (does ? (probe.periodSeconds ?? 10) * 1_000 : 200);
      probed.failures = does ? 0 : probed.failures + 1;
      if (!probed.started) probed.started = does;
      else probed.ready = does || probed.failures < (probe.failureThreshold ?? 3) ? does || probed.ready : false;
    }
    Object.assign(view, { started: probed.started, ready: probed.started && probed.ready });
  }

  async #end({ id, spec }: ContainerView, graceMs: number): Promise<void> {
    const deadline = Date.now() + graceMs;
    const { exec, sleep: pause } = spec.lifecycle?.preStop ?? {};
    if (pause) await sleep(Math.min(pause.seconds * 1_000, graceMs));
    if (exec) await Promise.race([execute(this.#podman, id!, exec.command), sleep(graceMs)]);
    await this.#podman.post(`/containers/${id}/kill?signal=SIGTERM`).catch(() => {});
    while (Date.now() < deadline) {
      const found = await this.#podman.find(`/containers/${id}/json`);
      if (!found?.State.Running) return;
      await sleep(50);
    }
    await this.#podman.post(`/containers/${id}/kill?signal=SIGKILL`).catch((error: unknown) => {
      if (!isStatus(error, 404, 409, 500)) throw error;
    });
  }
}
