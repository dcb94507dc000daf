/**
 * A process that outlives the service: `node instance-main.js FOLDER` runs the server of one instance (`order.json` in the folder), keeps its
 * output in bounded files with times, and writes how it ended. It leads a session of its own, in which the server runs. It ends with the server,
 * and with its folder: who deletes the data of a service leaves no instances behind.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fillIn } from '../provider/provider.port.ts';
import { freePort } from './free-port.ts';
import { FILES, type InstanceExit, type InstanceOrder, type InstanceRecord, readJson, writeJson } from './instance-files.ts';
import { onLines } from './log-lines.ts';
import { bootId, processEntry } from './process-table.ts';
import { RotatingLog } from './rotating-log.ts';

const PORT_ATTEMPTS = 5;
/** Another program took the port between the choice and the start of the server. */
const PORT_TAKEN = /EADDRINUSE|address already in use/i;
const START_MS = 60_000;
const FOLDER_MS = 2_000;
/** Programs that the server left behind may hold its output open. */
const OUTPUT_MS = 1_000;

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('usage: instance-main FOLDER');
// Signals go to the whole session. The end of the server ends this process.
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => {});

const order = await readJson<InstanceOrder>(folder, FILES.order);
if (order === null) throw new Error(`${folder} has no ${FILES.order}`);
const log = new RotatingLog(folder);
setInterval(() => existsSync(folder) || process.kill(0, 'SIGKILL'), FOLDER_MS).unref();
const exit = await run(folder, order);
log.flush();
await writeJson(folder, FILES.exit, exit);
process.kill(0, 'SIGKILL');

async function run(place: string, instance: InstanceOrder): Promise<InstanceExit> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort(instance.host);
    const startedAt = Date.now();
    await writeJson(place, FILES.record, await recordOf(port, startedAt));
    let isPortTaken = false;
    const ended = await serve(instance, port, (text) => (isPortTaken ||= PORT_TAKEN.test(text)));
    if (!isPortTaken || ended.code === 0 || attempt === PORT_ATTEMPTS || Date.now() - startedAt > START_MS) return ended;
  }
}

async function recordOf(port: number, startedAt: number): Promise<InstanceRecord> {
  const { pid } = process;
  const { startTicks } = (await processEntry(pid))!;
  return { pid, startTicks, bootId: await bootId(), port, startedAt: new Date(startedAt).toISOString() };
}

/** Resolves when the server has ended. */
async function serve({ host, kit, command, args, cwd, variables }: InstanceOrder, port: number, onText: (text: string) => void) {
  const filled = (text: string) => fillIn(text, { host, port, kit });
  const env = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, filled(value)]));
  const child = spawn(command, args.map(filled), { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const take = (stream: 'o' | 'e') => (text: string) => {
    onText(text);
    // The author knows the files by their paths in the source.
    log.add(Date.now(), stream, text.replaceAll(`${cwd}/`, ''));
  };
  onLines(child.stdout, take('o'));
  onLines(child.stderr, take('e'));
  return endOf(child);
}

async function endOf(child: ChildProcess): Promise<InstanceExit> {
  const closed = once(child, 'close').catch(() => {});
  try {
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    await Promise.race([closed, sleep(OUTPUT_MS)]);
    return { code, reason: signal === null ? `It exited with code ${code}.` : `It was ended by ${signal}.` };
  } catch (error) {
    return { code: null, reason: `It could not be started: ${(error as Error).message}.` };
  }
}
