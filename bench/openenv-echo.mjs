// The minimum cost of a server of JSON over WebSockets: `ws` on Node, every message parsed and serialised. Usage: openenv-echo.mjs PORT
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

const server = createServer((_request, response) => response.end('ok'));
new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (socket) => {
  socket.on('message', (data) => socket.send(JSON.stringify(JSON.parse(data.toString()))));
});
server.listen(Number(process.argv[2]), '127.0.0.1');
