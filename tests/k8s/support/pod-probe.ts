import { createConnection } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Api } from './api.ts';
import type { PodContainer, Probe } from './pod.ts';

/** Whether a container answers its probe. */
export async function answers(podman: Api, name: string, spec: PodContainer, probe: Probe, podIP: string): Promise<boolean> {
  const ms = (probe.timeoutSeconds ?? 1) * 1_000;
  const portOf = (port: number | string) =>
    typeof port === 'number' ? port : (spec.ports?.find((one) => one.name === port)?.containerPort ?? Number(port));
  if (probe.httpGet) {
    const { path = '/', port, scheme = 'HTTP' } = probe.httpGet;
    const url = `${scheme.toLowerCase()}://${podIP}:${portOf(port)}${path}`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(ms), redirect: 'manual' }).catch(() => null);
    await answer?.body?.cancel();
    return answer !== null && answer.status < 400;
  }
  if (probe.tcpSocket) return connects(podIP, portOf(probe.tcpSocket.port), ms);
  return probe.exec === undefined || (await execute(podman, name, probe.exec.command)) === 0;
}

/** Runs a command in a container; its exit status. */
export async function execute(podman: Api, name: string, command: string[]): Promise<number | null> {
  try {
    const { Id } = await podman.post(`/containers/${name}/exec`, { Cmd: command, AttachStdout: false, AttachStderr: false });
    await podman.post(`/exec/${Id}/start`, { Detach: true });
    for (;;) {
      const { Running, ExitCode } = await podman.get(`/exec/${Id}/json`);
      if (!Running) return ExitCode;
      await sleep(50);
    }
  } catch {
    return null;
  }
}

function connects(host: string, port: number, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port, timeout: ms });
    const end = (is: boolean) => {
      socket.destroy();
      resolve(is);
    };
    socket
      .on('connect', () => end(true))
      .on('error', () => end(false))
      .on('timeout', () => end(false));
  });
}
