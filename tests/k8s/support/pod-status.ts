import type { Pod, PodContainer } from './pod.ts';

/** What the test kubelet knows of a container. `retryAt`: when it starts again, in milliseconds; infinite: never. */
export interface ContainerView {
  spec: PodContainer;
  id: string | null;
  imageID: string;
  state: 'waiting' | 'running' | 'terminated';
  reason: string;
  message: string;
  ready: boolean;
  started: boolean;
  restarts: number;
  startedAt: string | null;
  finishedAt: string | null;
  exitCode: number | null;
  oomKilled: boolean;
  retryAt: number;
}

export function phaseOf(pod: Pod, inits: readonly ContainerView[], mains: readonly ContainerView[]): string {
  const has = (views: readonly ContainerView[], test: (code: number) => boolean) =>
    views.some(({ state, exitCode }) => state === 'terminated' && exitCode !== null && test(exitCode));
  if (pod.spec.restartPolicy === 'Never' && has(inits, (code) => code !== 0)) return 'Failed';
  if (mains.length > 0 && mains.every(({ state }) => state === 'terminated'))
    return has(mains, (code) => code !== 0) ? 'Failed' : 'Succeeded';
  return mains.some(({ startedAt }) => startedAt !== null) ? 'Running' : 'Pending';
}

export function conditions(isReady: boolean, hasStarted: boolean): object[] {
  const of = (type: string, is: boolean) => ({ type, status: is ? 'True' : 'False' });
  return [of('PodScheduled', true), of('Initialized', hasStarted), of('ContainersReady', isReady), of('Ready', isReady)];
}

/** One item of `containerStatuses`. */
export function statusOf(view: ContainerView): object {
  const { spec, state, reason, message, startedAt, finishedAt, exitCode } = view;
  const terminated = {
    exitCode: exitCode ?? 0,
    reason: reason || (view.oomKilled ? 'OOMKilled' : exitCode === 0 ? 'Completed' : 'Error'),
    ...(message !== '' && { message }),
    startedAt,
    finishedAt,
  };
  const states = { waiting: { reason, message }, running: { startedAt }, terminated };
  return {
    name: spec.name,
    image: spec.image,
    imageID: view.imageID,
    ...(view.id !== null && { containerID: `podman://${view.id}` }),
    ready: view.ready,
    started: view.started,
    restartCount: view.restarts,
    state: { [state]: states[state] },
    lastState:
      state === 'terminated' || exitCode === null ? {} : { terminated: { ...terminated, reason: exitCode === 0 ? 'Completed' : 'Error' } },
  };
}
