import http from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { ControlPlane } from './control-plane.ts';
import { containerName } from './pod-container.ts';

const STDIN = 0;
const STATUS = 3;

const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'v4.channel.k8s.io' });

/** Connects a stream of the API server with the standard input of a container in Podman. */
export function serveAttach(plane: ControlPlane, socketPath: string, request: http.IncomingMessage, socket: Duplex, head: Buffer): void {
  const [, , namespace, name, container] = new URL(request.url!, 'https://kubelet').pathname.split('/');
  sockets.handleUpgrade(request, socket, head, (client) => {
    // Nothing is lost while the container is found.
    client.pause();
    connect(plane, socketPath, `/api/v1/namespaces/${namespace}/pods/${name}`, container!).then(
      (input) => join(client, input),
      () => client.close(1011),
    );
  });
}

async function connect(plane: ControlPlane, socketPath: string, pod: string, container: string): Promise<Duplex> {
  const { uid } = (await plane.api.get(pod)).metadata;
  const path = `/v1.41/containers/${containerName(uid, container)}/attach?stream=1&stdin=1`;
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, path, method: 'POST', headers: { connection: 'Upgrade', upgrade: 'tcp' } });
    request.on('upgrade', (_answer, socket) => resolve(socket)).on('error', reject);
    request.on('response', ({ statusCode }) => reject(new Error(`Podman attaches nobody: ${statusCode}`)));
    request.end();
  });
}

function join(client: WebSocket, input: Duplex): void {
  client.on('message', (data: Buffer) => {
    if (data[0] === STDIN) input.write(data.subarray(1));
  });
  client.on('close', () => input.destroy());
  input.on('error', () => {}).resume();
  input.on('close', () => {
    client.send(Buffer.concat([Buffer.of(STATUS), Buffer.from(JSON.stringify({ status: 'Success' }))]));
    client.close();
  });
  client.resume();
}
