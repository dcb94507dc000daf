// A server that reads uploads and stores nothing, for client.mjs. Usage: upload-sink.mjs PORT
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
}).listen(Number(process.argv[2]), '127.0.0.1');
process.once('SIGTERM', () => {
  server.closeAllConnections();
  server.close(() => process.exit(0));
});
