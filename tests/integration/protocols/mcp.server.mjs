// An MCP server of the official SDK in plain JavaScript, for the tests of MCP as a backend: on standard input and output, or at a port.
//   node mcp.server.mjs stdio | http | stateless | sse        (all but stdio: prints its port; stateless: counts from 0 in each request)
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { spawn } from 'node:child_process';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const [kind] = process.argv.slice(2);
const PIXEL = 'iVBORw0KGgo=';
const text = (words) => [{ type: 'text', text: words }];

function counter() {
  let count = 0;
  const server = new McpServer({ name: 'counter', version: '2.0.0', title: 'Counter' }, { instructions: 'Count to three.' });
  server.registerTool('add', { description: 'Adds', inputSchema: { by: z.number() } }, ({ by }) => {
    count += by;
    return { content: text(String(count)), _meta: { 'palestra/reward': count === 3 ? 1 : 0, 'palestra/finished': count >= 3 } };
  });
  server.registerTool('plain', { description: 'Says nothing of reward' }, () => ({
    content: [
      ...text('plain'),
      { type: 'image', data: PIXEL, mimeType: 'image/png' },
      { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: 'file:///a', text: 'inside' } },
    ],
    structuredContent: { a: 1 },
  }));
  server.registerTool('fail', {}, () => {
    throw new Error('no luck');
  });
  server.registerTool('environment', {}, () => ({ content: text(JSON.stringify({ ...process.env, cwd: process.cwd() })) }));
  server.registerTool('child', {}, () => ({ content: text(String(spawn('sleep', ['600'], { stdio: 'inherit' }).pid)) }));
  server.registerTool('pid', {}, () => ({ content: text(String(process.pid)) }));
  server.registerTool('die', { inputSchema: { after_ms: z.number().default(0) } }, ({ after_ms: afterMs }) => {
    console.error('I was told to die.');
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), afterMs);
    return new Promise(() => {});
  });
  server.registerTool('march', { inputSchema: { ms: z.number() } }, async ({ ms }, { _meta: meta, sendNotification }) => {
    for (let step = 1; step <= 3; step += 1) {
      await new Promise((resolve) => setTimeout(resolve, ms));
      const params = { progressToken: meta?.progressToken, progress: step, total: 3, message: `step ${step}` };
      if (meta?.progressToken !== undefined) await sendNotification({ method: 'notifications/progress', params });
    }
    return { content: text('there') };
  });
  server.registerTool('doze', { inputSchema: { ms: z.number() } }, async ({ ms }) => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    return { content: text('awake') };
  });
  return server;
}

if (kind === 'stdio') {
  console.error('ready to count');
  await counter().connect(new StdioServerTransport());
} else {
  const transports = new Map();
  const http = createServer(async (request, response) => {
    if (kind === 'sse') {
      if (request.method === 'GET') {
        const transport = new SSEServerTransport('/messages', response);
        transports.set(transport.sessionId, transport);
        return counter().connect(transport);
      }
      const known = transports.get(new URL(request.url, 'http://x').searchParams.get('sessionId'));
      return known ? known.handlePostMessage(request, response) : response.writeHead(405).end();
    }
    if (kind === 'stateless') {
      const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
      response.once('close', () => void transport.close());
      await counter().connect(transport);
      return transport.handleRequest(request, response);
    }
    const sid = request.headers['mcp-session-id'];
    let transport = transports.get(sid);
    if (sid !== undefined && transport === undefined) return response.writeHead(404).end();
    if (transport === undefined) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (id) => transports.set(id, transport),
        onsessionclosed: (id) => transports.delete(id),
      });
      await counter().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  http.listen(0, '127.0.0.1', () => console.log(http.address().port));
}
