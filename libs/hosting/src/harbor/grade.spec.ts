import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import tar from 'tar-stream';
import { afterAll, expect, test } from 'vitest';
import { grade, type GradeOptions } from './grade.ts';
import type { Command, TaskContainer } from './task-container.ts';
import type { TaskStep } from './task-folder.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'palestra-grade-'));
afterAll(() => rmSync(folder, { recursive: true }));
mkdirSync(path.join(folder, 'tests'));
writeFileSync(path.join(folder, 'tests/test.sh'), '');

/** What `grade` does with a container, in order: programs with their users, folders with their modes and owners. */
async function steps(given: Partial<GradeOptions> & Pick<GradeOptions, 'endsProcesses'>, step: Partial<TaskStep> = {}): Promise<string[]> {
  const done: string[] = [];
  let unhealthy = 1;
  const container = {
    restart: async () => void done.push('restart'),
    changedPaths: async () => new Set<string>(),
    kindOf: async () => 'none',
    readFile: async () => Buffer.from('{"reward": 1}'),
    upload: async (pack: () => Readable) => {
      for await (const entry of pack().pipe(tar.extract())) {
        const { name, mode, uid } = entry.header;
        if (name.startsWith('logs')) done.push(`${name} ${mode!.toString(8)} ${uid}`);
        entry.resume();
      }
    },
    run: async ({ program, user }: Command) => {
      done.push(`${user}: ${program.at(-1)!.split(' > ')[0]}`);
      if (program.at(-1) === 'healthy') return { code: unhealthy-- > 0 ? 1 : 0, output: '' };
      return { code: 0, output: '1001\n' };
    },
  };
  const all = { tests: ['tests'], verifierSeconds: 1, verifierUser: null, agentUser: null, verifierVariables: {}, ...step } as TaskStep;
  const options = { folder, step: all, variables: {}, healthcheck: null, ...given };
  await grade(container as Partial<TaskContainer> as TaskContainer, options, AbortSignal.timeout(10_000));
  return done;
}

const healthcheck = { command: 'healthy', interval_sec: 0, timeout_sec: 1, start_period_sec: 0, start_interval_sec: 0, retries: 3 };

test('the tests wait until the programs of the image that started again are healthy', async () => {
  const done = await steps({ endsProcesses: true, healthcheck });
  expect(done.slice(0, 3)).toEqual(['restart', 'null: healthy', 'null: healthy']);
  expect(done).toContain('null: (/tests/test.sh)');
  expect(await steps({ endsProcesses: false, healthcheck })).not.toContain('null: healthy');
});

test('a program of the agent that runs on cannot write the reward, if the tests have another user', async () => {
  const done = await steps({ endsProcesses: false }, { verifierUser: 'root', agentUser: 'agent' });
  expect(done).toEqual([
    'root: echo "$EUID"',
    'logs/ 700 0',
    '0: /logs/verifier',
    'logs/ 755 0',
    'logs/agent/ 777 0',
    'logs/verifier/ 700 1001',
    'logs/artifacts/ 777 0',
    'root: (/tests/test.sh)',
    '0: /logs/verifier/test-stdout.txt',
  ]);
  const open = ['logs/ 777 0', 'logs/agent/ 777 0', 'logs/verifier/ 777 0', 'logs/artifacts/ 777 0'];
  expect(await steps({ endsProcesses: false })).toEqual(expect.arrayContaining(open));
  expect(await steps({ endsProcesses: true }, { verifierUser: 'root', agentUser: 'agent' })).toEqual(expect.arrayContaining(open));
});
