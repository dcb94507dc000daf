import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

/**
 * A small OpenEnv server with real sockets, scripted by a test. Its environment answers each step with the number in the action and counts
 * steps.
 */
export interface Script {
  /** `E` attaches sockets to HTTP sessions, `C` does not. */
  generation: 'C' | 'E';
  /** Called after a socket opened. true: nothing else happens on it. */
  onSocket?: (socket: WebSocket, count: number) => boolean | void;
  /** Called instead of sending a reply. The next message is handled after it returned. `n`: the number in the action. */
  onMessage?: (socket: WebSocket, reply: string, message: { type: string; n: number | null }) => boolean | void | Promise<boolean | void>;
  /** Answers a GET. true: answered. */
  onGet?: (path: string, response: http.ServerResponse) => boolean;
  /** Answers a POST. */
  onPost?: (socket: Socket) => boolean;
  /** HTTP status of a refused upgrade. */
  refuseUpgrade?: (count: number) => number | null;
  /** Whether the connection breaks right after the upgrade. */
  breakUpgrade?: (count: number) => boolean;
}

interface Episode {
  steps: number;
  attached: boolean;
}

export interface ScriptedServer {
  url: string;
  /** Messages that reached an episode, without fences. */
  seen: { type: string; n: number | null }[];
  sockets: () => number;
  /** Open sessions of `openenv/session/create`. */
  sessions: () => number;
  stop(): Promise<void>;
}

const schema = {
  action: { title: 'NumberAction', type: 'object', properties: { n: { type: 'integer' }, metadata: {} }, required: ['n'] },
  observation: {},
  state: {},
};

export async function startScripted(script: Script): Promise<ScriptedServer> {
  const sessions = new Map<string, Episode>();
  const seen: { type: string; n: number | null }[] = [];
  let [opened, upgrades, ids] = [0, 0, 0];
  const server = http.createServer((request, response) => {
    const answer = (body: unknown, status = 200) =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (request.method === 'POST') {
      if (script.onPost?.(request.socket)) return;
      let body = '';
      request.on('data', (piece: Buffer) => (body += piece.toString()));
      request.on('end', () => answer(rpc(JSON.parse(body))));
      return;
    }
    if (script.onGet?.(request.url ?? '', response)) return;
    const routes: Record<string, unknown> = {
      '/schema': schema,
      '/openapi.json': { paths: { '/reset': {}, '/mcp': {} } },
      '/metadata': { name: 'Numbers', description: 'Says the number.' },
      ...(script.generation === 'E' && { '/list_environments': ['numbers'] }),
    };
    const found = routes[request.url ?? ''];
    answer(found ?? { detail: 'Not Found' }, found === undefined ? (request.url === '/numbers/splits' ? 501 : 404) : 200);
  });
  const rpc = ({ method, params, id }: { method: string; params: { session_id?: string }; id: unknown }) => {
    if (method === 'openenv/session/create') {
      sessions.set(`s${(ids += 1)}`, { steps: 0, attached: false });
      return { jsonrpc: '2.0', id, result: { session_id: `s${ids}` } };
    }
    const closed = sessions.delete(params.session_id ?? '');
    return closed
      ? { jsonrpc: '2.0', id, result: { closed } }
      : { jsonrpc: '2.0', id, error: { code: -32_602, message: 'Unknown session_id' } };
  };
  const acceptor = new WebSocketServer({ noServer: true, maxPayload: 16 * 1024 * 1024 });
  server.on('upgrade', (request, socket, head) => {
    const refusal = script.refuseUpgrade?.((upgrades += 1)) ?? null;
    if (refusal !== null) return void socket.end(`HTTP/1.1 ${refusal} Refused\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
    acceptor.handleUpgrade(request, socket, head, (accepted) => {
      if (script.breakUpgrade?.(upgrades) === true) accepted.terminate();
      else serve(accepted, request.url ?? '');
    });
  });

  function serve(socket: WebSocket, path: string): void {
    socket.on('error', () => {});
    const error = (code: string, message: string) => JSON.stringify({ type: 'error', data: { message, code } });
    const wanted = /session_id=([^&]*)/.exec(path)?.[1];
    const known = wanted === undefined ? undefined : sessions.get(wanted);
    if (script.generation === 'E' && wanted !== undefined && (known === undefined || known.attached)) {
      socket.send(error('SESSION_ERROR', known ? `Session ${wanted} already has an attached WebSocket` : `Unknown session_id: ${wanted}`));
      return socket.close(1000);
    }
    opened += 1;
    if (script.onSocket?.(socket, opened)) return;
    const episode = known ?? { steps: 0, attached: true };
    episode.attached = true;
    socket.on('close', () => (episode.attached = false));
    let turn = Promise.resolve();
    const take = async (data: Buffer): Promise<void> => {
      const { type, data: body } = JSON.parse(data.toString()) as { type: string; data?: { n?: number } };
      if (type === 'close') return socket.close(1000);
      if (!['reset', 'step', 'state', 'mcp'].includes(type)) return socket.send(error('UNKNOWN_TYPE', `Unknown message type: ${type}`));
      const message = { type, n: body?.n ?? null };
      seen.push(message);
      if (type === 'step') episode.steps += 1;
      const reply =
        type === 'state'
          ? { type, data: { step_count: episode.steps } }
          : { type: 'observation', data: { observation: { n: message.n }, reward: 0, done: false } };
      const text = JSON.stringify(reply);
      if (!(await script.onMessage?.(socket, text, message))) socket.send(text);
    };
    // OpenEnv servers handle messages one after another.
    socket.on('message', (data: Buffer) => void (turn = turn.then(() => take(data))));
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    sockets: () => acceptor.clients.size,
    sessions: () => sessions.size,
    async stop() {
      for (const client of acceptor.clients) client.terminate();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
