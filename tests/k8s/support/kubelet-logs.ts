import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ControlPlane } from './control-plane.ts';
import { serveAttach } from './kubelet-attach.ts';
import { serveExec } from './kubelet-exec.ts';
import { logFile } from './pod-container.ts';

const POLL_MS = 50;

/** What the API server asks a kubelet for: logs and standard inputs of containers, and programs in them. `folderOf`: the folder of a pod, by its uid. */
export async function serveLogs(
  plane: ControlPlane,
  socketPath: string | null,
  folderOf: (uid: string) => string,
): Promise<{ port: number; close: () => Promise<void> }> {
  const server = https.createServer({ cert: plane.ca, key: plane.key }, (request, response) => {
    const url = new URL(request.url!, 'https://kubelet');
    const [, kind, namespace, name, container] = url.pathname.split('/');
    if (kind !== 'containerLogs') return void response.writeHead(404).end();
    writeLog(plane, { namespace: namespace!, name: name!, container: container! }, url.searchParams, folderOf, response).catch(
      (error: Error) => {
        if (!response.headersSent) response.writeHead(500);
        response.end(error.message);
      },
    );
  });
  server.on('upgrade', (request, socket, head) => {
    const kind = request.url!.split('/')[1];
    if (socketPath !== null && kind === 'attach') serveAttach(plane, socketPath, request, socket, head);
    else if (socketPath !== null && kind === 'exec') serveExec(plane, request, socket, head);
    else socket.destroy();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function writeLog(
  plane: ControlPlane,
  { namespace, name, container }: { namespace: string; name: string; container: string },
  query: URLSearchParams,
  folderOf: (uid: string) => string,
  response: ServerResponse,
): Promise<void> {
  const pod = () => plane.api.find(`/api/v1/namespaces/${namespace}/pods/${name}`).catch(() => null);
  const { uid } = (await pod())?.metadata ?? {};
  const file = logFile({ folder: folderOf(uid) }, path.basename(container));
  const since = query.get('sinceTime') === null ? -1 : new Date(query.get('sinceTime')!).getTime();
  const wants = (at: number) => at >= since;
  response.writeHead(200, { 'content-type': 'text/plain' });
  response.flushHeaders();
  let isNewLine = true;
  for await (const line of linesOf(file, query.get('follow') === 'true', response, async () => hasEnded(await pod(), uid, container))) {
    const [, time, flag, text] = /^(\S+) \S+ ([FP]) ?(.*)$/s.exec(line) ?? [];
    if (time === undefined || !wants(new Date(time).getTime())) continue;
    // As a kubelet does: a line that was written in parts has one time.
    response.write(`${query.get('timestamps') === 'true' && isNewLine ? `${time} ` : ''}${text}${flag === 'F' ? '\n' : ''}`);
    isNewLine = flag === 'F';
  }
  response.end();
}

function hasEnded(pod: any, uid: string, container: string): boolean {
  if (pod === null || pod.metadata.uid !== uid) return true;
  const all = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  return all.find(({ name }: { name: string }) => name === container)?.state.terminated !== undefined;
}

/** Of a file that grows. It ends when the reader has gone, or when its writer has ended. */
async function* linesOf(file: string, follow: boolean, reader: ServerResponse, ended: () => Promise<boolean>): AsyncGenerator<string> {
  while (!existsSync(file)) {
    if (!follow || reader.destroyed || (await ended())) return;
    await sleep(POLL_MS);
  }
  const handle = await open(file);
  const buffer = Buffer.alloc(65_536);
  let rest = Buffer.alloc(0);
  try {
    for (let isLast = !follow; ;) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, null);
      if (bytesRead === 0) {
        if (isLast || reader.destroyed) return;
        // What is written before it ends is read once more.
        isLast = await ended();
        if (!isLast) await sleep(POLL_MS);
        continue;
      }
      rest = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
      for (let at = rest.indexOf(10); at !== -1; at = rest.indexOf(10)) {
        yield rest.subarray(0, at).toString();
        rest = rest.subarray(at + 1);
      }
    }
  } finally {
    await handle.close();
  }
}
