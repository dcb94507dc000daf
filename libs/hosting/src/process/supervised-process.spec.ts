import { afterEach, describe, expect, test } from 'vitest';
import { type ProcessOptions, SupervisedProcess } from './supervised-process.ts';

const soon = () => AbortSignal.timeout(25_000);
const started: SupervisedProcess[] = [];

function node(script: string, options: Partial<ProcessOptions> = {}): SupervisedProcess {
  const child = new SupervisedProcess({ name: 'test', command: process.execPath, args: ['-e', script], minBackoffMs: 20, ...options });
  started.push(child);
  child.start();
  return child;
}

const SERVE = `process.stdin.resume().on('end', () => process.exit(0)); console.log('hello'); console.log(JSON.stringify({ ready: true, pid: process.pid }));`;

async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 25_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('did not happen');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const alive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

afterEach(async () => {
  await Promise.all(started.splice(0).map((child) => child.stop()));
});

describe('SupervisedProcess', () => {
  test('returns the ready line and keeps the other lines', async () => {
    const child = node(SERVE);
    expect(await child.whenReady(soon())).toMatchObject({ ready: true, pid: child.pid });
    expect(child.state).toBe('ready');
    expect(child.logs()).toEqual(['hello']);
  });

  test('restarts a process that died and reports the loss', async () => {
    let lost = 0;
    const child = node(SERVE, { onLost: () => (lost += 1) });
    const first = await child.whenReady(soon());
    process.kill(Number(first['pid']), 'SIGKILL');
    await until(() => child.ready !== null && child.ready['pid'] !== first['pid']);
    expect(lost).toBe(1);
    expect(child.lastExit).toBe('was ended by SIGKILL');
  });

  test('keeps restarting a process that cannot start', async () => {
    const child = node(`console.error('no'); process.exit(3)`);
    await until(() => child.logs().filter((line) => line === 'no').length >= 3);
    expect(child.lastExit).toBe('exited with code 3');
    await expect(child.whenReady(AbortSignal.timeout(50))).rejects.toThrow();
  });

  test('kills a process that never becomes ready', async () => {
    const child = node(`setInterval(() => {}, 1000)`, { readyTimeoutMs: 100 });
    await until(() => child.lastExit !== null);
    expect(child.lastExit).toBe('was ended by SIGKILL');
  });

  test('kills a process that ignores SIGTERM after the grace period', async () => {
    const child = node(`process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.log('{"ready":true}')`, { stopGraceMs: 100 });
    await child.whenReady(soon());
    const pid = child.pid!;
    await child.stop();
    expect(child.state).toBe('stopped');
    expect(alive(pid)).toBe(false);
  });

  test('reports a command that does not exist as an exit', async () => {
    const child = node('', { command: '/does/not/exist' });
    await until(() => child.lastExit !== null);
    expect(child.lastExit).toContain('could not be started');
  });
});
