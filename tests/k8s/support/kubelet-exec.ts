import { spawn } from 'node:child_process';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { engineCommand } from '../../integration/hosting/docker-engine.world.ts';
import type { ControlPlane } from './control-plane.ts';
import { containerName } from './pod-container.ts';

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const STATUS = 3;
/** Of `podman exec`, when the program cannot be started; the last one when the container does not run. */
const START_FAILURES = new Set([125, 126, 127, 255]);

const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'v4.channel.k8s.io' });

/** Runs a program in a container, with the command of Podman. As on a node, the program goes on when the connection ends. */
export function serveExec(plane: ControlPlane, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const url = new URL(request.url!, 'https://kubelet');
  const [, , namespace, name, container] = url.pathname.split('/');
  sockets.handleUpgrade(request, socket, head, (client) => {
    // Nothing is lost while the container is found.
    client.pause();
    plane.api.get(`/api/v1/namespaces/${namespace}/pods/${name}`).then(
      ({ metadata }) => run(client, containerName(metadata.uid, container!), url.searchParams),
      () => client.close(1011),
    );
  });
}

function run(client: WebSocket, container: string, query: URLSearchParams): void {
  const takesInput = query.get('input') === '1';
  const program = spawn(engineCommand!, ['exec', ...(takesInput ? ['-i'] : []), container, ...query.getAll('command')]);
  const send = (stream: number, bytes: Buffer) => client.send(Buffer.concat([Buffer.of(stream), bytes]));
  let errors = '';
  program.stdin
    .on('error', () => {})
    .on('drain', () => client.resume())
    .on('close', () => client.resume());
  program.stdout.on('data', (bytes: Buffer) => send(STDOUT, bytes));
  program.stderr.on('data', (bytes: Buffer) => {
    errors = (errors + bytes.toString()).slice(-1_000);
    send(STDERR, bytes);
  });
  client.on('message', (data: Buffer) => {
    if (data[0] === STDIN && !program.stdin.write(data.subarray(1))) client.pause();
  });
  client.on('close', () => program.kill('SIGKILL')).on('error', () => {});
  program.on('close', (code) => {
    send(STATUS, Buffer.from(JSON.stringify(statusOf(code ?? 137, errors))));
    client.close();
  });
  client.resume();
}

/** As a kubelet tells the end of a program. */
function statusOf(code: number, errors: string): object {
  if (code === 0) return { metadata: {}, status: 'Success' };
  if (START_FAILURES.has(code) && errors.startsWith('Error: '))
    return {
      metadata: {},
      status: 'Failure',
      reason: 'InternalError',
      message: `error executing command in container: ${errors}`,
      code: 500,
    };
  const causes = [{ reason: 'ExitCode', message: String(code) }];
  const message = `command terminated with non-zero exit code: exit status ${code}`;
  return { metadata: {}, status: 'Failure', message, reason: 'NonZeroExitCode', details: { causes } };
}
