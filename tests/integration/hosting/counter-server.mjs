import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { defineEnvironment, serve, tool, z } from '@palestra/environment-kit';

/**
 * The server of an instance in tests. `MODE`: `exit` ends at once, `deaf` never listens, `late` listens after `LATE_MS`, `broken` fails each
 * call, `foreign` is another HTTP server, `banner` speaks no HTTP, `mute` accepts connections and never answers. `LAST`: JSON of what `exit` writes. `COUNT_FILE` gets the id of each call that runs.
 */
const { PORT, MODE = 'serve', VERSION = '1', LATE_MS = '0', FLAG = '', FIXED, COUNT_FILE, LAST } = process.env;

const counter = defineEnvironment({
  name: 'counter',
  description: 'Counts the calls of a session.',
  splits: ['train'],
  tasks: () => Array.from({ length: 10 }, (_, id) => ({ id })),
  create: () => ({ count: 0 }),
  prompt: ({ task }) => `Task ${task.id} of version ${VERSION}.`,
  tools: {
    add: tool({
      description: 'Adds one and returns the count.',
      input: z.object({ pause_ms: z.number().default(0), id: z.string().default('') }),
      run: async ({ pause_ms: pauseMs, id }, session) => {
        if (MODE === 'broken') throw new Error('broken on purpose');
        if (COUNT_FILE !== undefined) appendFileSync(COUNT_FILE, `${id}\n`);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
        session.state.count += 1;
        return { content: `${VERSION}:${FIXED === undefined ? process.pid : 0}:${session.state.count}${FLAG}`, reward: 1 };
      },
    }),
    crash: tool({ description: 'Ends the process.', input: z.object({}), run: () => process.exit(7) }),
  },
});

console.log(`starting version ${VERSION}`);
if (MODE === 'exit') {
  console.error('cannot find the weights');
  if (LAST !== undefined) console.error(JSON.parse(LAST));
  process.exit(3);
} else if (MODE === 'deaf') setInterval(() => {}, 1_000);
else if (MODE === 'foreign') createServer((_request, response) => response.end('hello')).listen(Number(PORT), '127.0.0.1');
else if (MODE === 'banner')
  createTcpServer((socket) => socket.on('error', () => {}).end('220 mail.test\r\n')).listen(Number(PORT), '127.0.0.1');
else if (MODE === 'mute') createTcpServer((socket) => socket.on('error', () => {}).resume()).listen(Number(PORT), '127.0.0.1');
else {
  // Until it is ready, it answers as a proxy in front of it would.
  const early =
    MODE === 'late' ? createServer((_request, response) => response.writeHead(503).end()).listen(Number(PORT), '127.0.0.1') : null;
  await new Promise((resolve) => setTimeout(resolve, Number(LATE_MS)));
  if (early !== null) await new Promise((resolve) => early.close(resolve).closeAllConnections());
  await serve([counter], { port: Number(PORT) });
  console.log('listening');
}
process.on('SIGTERM', () => process.exit(0));
