import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { sandboxCommand } from './command.ts';
import { makeProgramFolder, type ProgramFolder } from './program-folder.ts';
import { SandboxedProcess } from './sandboxed-process.ts';

const PATIENCE_MS = 60_000;
const MOST_BYTES = 100;

/** Does as it is told, by a name; sends `ready` first. */
const PROGRAM = `
const send = (text) => {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(text.length);
  process.stdout.write(Buffer.concat([head, Buffer.from(text)]));
};
const acts = {
  answer: () => send('here'),
  pieces: () => [...Buffer.from([0, 0, 0, 2, 111, 107])].forEach((byte, at) => setTimeout(() => process.stdout.write(Buffer.from([byte])), at * 5)),
  twice: () => (send('one'), send('two')),
  tooMuch: () => send('x'.repeat(${MOST_BYTES + 1})),
  compute: () => { const until = performance.now() + 300; while (performance.now() < until); send('done'); },
  fail: () => { throw new Error('broken on purpose'); },
};
process.stdin.on('data', (data) => acts[data.toString('utf8', 4)]());
send('ready');
`;

let folder: ProgramFolder;
const running: SandboxedProcess[] = [];
beforeAll(async () => {
  folder = await makeProgramFolder();
  await folder.write('program.mjs', Buffer.from(PROGRAM));
});
afterEach(() => Promise.all(running.splice(0).map((process) => process.kill())));
afterAll(() => folder.remove());

async function start(): Promise<SandboxedProcess> {
  const process = new SandboxedProcess(sandboxCommand('process', { folder: folder.path, flags: [], args: ['program.mjs'] }));
  running.push(process);
  expect(String(await process.receive(MOST_BYTES))).toBe('ready');
  return process;
}

test('answers every message, in any number of pieces', { timeout: PATIENCE_MS }, async () => {
  const process = await start();
  expect(String(await process.ask('answer', MOST_BYTES))).toBe('here');
  expect(String(await process.ask('pieces', MOST_BYTES))).toBe('ok');
});

test.each(['twice', 'tooMuch'])('is ended after an unexpected answer: %s', { timeout: PATIENCE_MS }, async (act) => {
  const process = await start();
  const ended = new Promise<void>((resolve) => process.onEnd(resolve));
  await process.ask(act, MOST_BYTES).catch(() => {});
  await ended;
  await expect(process.ask('answer', MOST_BYTES)).rejects.toThrow('ended by SIGKILL');
});

test('reports how it ended', { timeout: PATIENCE_MS }, async () => {
  const process = await start();
  await expect(process.ask('fail', MOST_BYTES)).rejects.toMatchObject({
    message: 'the process ended with 1',
    stderr: expect.stringContaining('broken on purpose'),
  });
  await expect.poll(() => process.usage()).toBeNull();
});

test.runIf(process.platform === 'linux')('is measured from outside', { timeout: PATIENCE_MS }, async () => {
  const process = await start();
  const before = process.usage()!;
  while (process.usage()!.cpuMs - before.cpuMs < 200) await process.ask('compute', MOST_BYTES);
  expect(process.usage()!.rssBytes).toBeGreaterThan(20 * (1 << 20));
});
