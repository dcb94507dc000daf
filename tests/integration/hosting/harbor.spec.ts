import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PalestraClient, type Session, ToolFailedError } from '@palestra/client';
import type { DeployView } from '@palestra/protocol';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { CLI } from '../../conformance/support/foreground.ts';
import { type Palestra, startPalestra } from '../../support/palestra.ts';
import { engineCommand, TestEngine } from './docker-engine.world.ts';
import { makeShellImage } from '../../support/shell-image.ts';
import { broken, dataset, writeFiles } from './harbor.world.ts';

/** A busy machine starts the engine slowly. */
const ENGINE_SEEN = { timeout: 120_000, interval: 500 };
const WITHIN = { timeout: 30_000, interval: 200 };

/** Folders of Harbor, deployed by the command and played by sessions, in containers of Podman. */
describe.skipIf(engineCommand === undefined)('tasks of Harbor', { timeout: 300_000 }, () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-harbor-'));
  const examples = path.join(folder, 'examples');
  let engine: TestEngine;
  let image: string | undefined;
  let palestra: Palestra;
  let client: PalestraClient;

  beforeAll(async () => {
    engine = await TestEngine.start();
    image = makeShellImage(engineCommand!);
    palestra = await startPalestra({
      env: { PALESTRA_HOSTING: 'docker', PALESTRA_DOCKER_HOST: `unix://${engine.socket}`, PALESTRA_BASE_IMAGE_NODE: engine.image },
    });
    client = new PalestraClient({ url: palestra.url, apiKey: palestra.apiKey });
    Object.assign(engine, { installation: await installation() });
    writeFiles(examples, dataset(image));
  });
  afterAll(async () => {
    if (client !== undefined) await deleteEnvironments();
    await client?.close();
    await palestra?.stop();
    if (image !== undefined) engine.ask('rmi', '-f', image);
    await engine?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Resolves when the service has seen the engine. */
  async function installation(): Promise<string> {
    const database = new pg.Client({ connectionString: palestra.databaseUrl! });
    await database.connect();
    try {
      return await vi.waitFor(async () => {
        const sql =
          'SELECT i.id FROM hosting_installation AS i, hosting_engines AS e WHERE e.name = $1 AND e.capabilities IS NOT NULL AND e.detail IS NULL';
        const { rows } = await database.query<{ id: string }>(sql, ['docker']);
        return rows[0]!.id;
      }, ENGINE_SEEN);
    } finally {
      await database.end();
    }
  }

  /** Their instances are processes, which outlive the service. */
  async function deleteEnvironments(): Promise<void> {
    const { environments } = await client.environments.list({ owner: palestra.namespace });
    for (const { owner, name } of environments)
      await fetch(`${palestra.url}/v1/environments/${owner}/${name}`, { method: 'DELETE', headers: { 'x-api-key': palestra.apiKey } });
    await vi.waitFor(() => expect(engine.leftovers()).toEqual([]), WITHIN);
  }

  async function run(...args: string[]): Promise<{ code: number | null; stdout: string; output: string }> {
    const env = { ...process.env, PALESTRA_URL: palestra.url, PALESTRA_API_KEY: palestra.apiKey, NO_COLOR: '1' };
    const child = spawn(process.execPath, [CLI, ...args], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let [stdout, output] = ['', ''];
    child.stdout.on('data', (data: Buffer) => {
      stdout += data.toString();
      output += data.toString();
    });
    child.stderr.on('data', (data: Buffer) => (output += data.toString()));
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, stdout, output };
  }

  const environment = () => `${palestra.namespace}/examples`;
  const INDEX = { answer: 0, parts: 1, service: 2, steps: 3 };

  async function play<T>(task: keyof typeof INDEX, work: (session: Session) => Promise<T>): Promise<T> {
    await using session = await client.session({ environment: environment(), split: 'train', index: INDEX[task] });
    return await work(session);
  }
  const text = (blocks: readonly object[]) => blocks.map((block) => ('text' in block ? String(block.text) : '')).join('');
  async function bash(session: Session, command: string, timeout = 20): Promise<string> {
    return text((await session.call('bash', { command, timeout_s: timeout })).blocks);
  }
  /** The message with which the tests fail, and no reward. */
  async function failure(session: Session): Promise<string> {
    const failed = await session.call('submit').catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(ToolFailedError);
    return (failed as Error).message;
  }

  test('a dataset is deployed by the command when its solutions pass', async () => {
    const { code, output } = await run('env', 'deploy', 'examples');
    expect(code, output).toBe(0);
    expect(output).toContain('Found 4 tasks of Harbor.');
    for (const task of ['answer', 'parts', 'steps']) expect(output).toContain(`Task ${task}: its solution gets the full reward (`);
    expect(output).toContain('Task service: its solution gets the full reward while its programs run on');
    const { tasks } = await client.environments.tasks(environment(), { split: 'train' });
    expect(tasks.map(({ task_spec: task }) => task)).toMatchObject([
      { id: 'answer', name: 'answer', metadata: { difficulty: 'easy' } },
      { id: 'parts', name: 'acme/parts', description: 'Files that must exist' },
      { id: 'service' },
      { id: 'steps' },
    ]);
    expect(JSON.stringify(tasks)).not.toContain('EXPECTED');
  });

  test('an agent works in a container of the task, and its tests give the reward', async () => {
    await play('answer', async (session) => {
      expect(text(await session.prompt())).toBe('Write the answer to /app/answer.txt.\n');
      expect((await session.taskTools()).tools.map(({ name }) => name)).toEqual(['bash', 'submit']);
      expect(await bash(session, 'cat given.txt; echo $GREETING; exit 4')).toBe('6 * 7\nhello\n[exit code 4]');
      expect(await bash(session, 'echo oops >&2')).toBe('oops\n[exit code 0]');
      expect(await bash(session, 'ls -d /tests /solution; ls /logs')).toContain('agent\nartifacts\nverifier\n');
      expect(await bash(session, 'ls /tests /solution 2>&1')).toContain('[exit code 2]');
      await bash(session, 'echo 42 > /app/answer.txt');
      expect(await session.call('submit')).toMatchObject({ reward: 1, finished: true, metadata: { rewards: { reward: 1 } } });
    });
    await play('answer', async (session) => {
      await bash(session, 'echo 41 > /app/answer.txt');
      expect(await session.call('submit')).toMatchObject({ reward: 0, finished: true });
    });
    await play('parts', async (session) => {
      expect(await bash(session, 'id -u; touch /tmp/a /tmp/b')).toBe('1000\n[exit code 0]');
      expect(await session.call('submit')).toMatchObject({ reward: 0.66, metadata: { rewards: { reward: 0.66, files: 2 } } });
    });
  });

  test('tests that crash, hang or write nonsense give no reward', async () => {
    const messages = await Promise.all(
      ['crash', 'nonsense', 'hang'].map((word) =>
        play('answer', async (session) => {
          await bash(session, `echo ${word} > /app/answer.txt`);
          return failure(session);
        }),
      ),
    );
    expect(messages[0]).toContain('Infrastructure failure: The tests ended with status 3 and wrote neither reward.txt nor reward.json');
    expect(messages[1]).toContain('"very good", which is not a finite number');
    expect(messages[2]).toContain('The tests took longer than 3 s.');
  });

  test('a command that takes too long is killed, with what it left in the background', async () => {
    await play('answer', async (session) => {
      expect(await bash(session, 'echo begun; sleep 100 & sleep 101', 3)).toBe('begun\n[killed after 3 s]');
      expect(await bash(session, 'cat /proc/[0-9]*/cmdline')).not.toMatch(/sleep\0?10[01]/);
      expect(await bash(session, 'sleep 200 & echo at once')).toBe('at once\n[exit code 0]');
      const long = await bash(session, 'for ((i = 0; i < 40000; i++)); do echo "line $i"; done');
      expect(long.length).toBeLessThan(70_000);
      expect(long).toMatch(/^line 0\n[^]*\[only the first 65536 bytes\]\n\[exit code 0\]$/);
    });
  });

  test('an agent that tampers with the tests does not get their reward', async () => {
    const attacks = [
      // The tests are its own.
      'mkdir /tests && printf "#!/bin/bash\\necho 1 > /logs/verifier/reward.txt\\n" > /tests/test.sh && chmod 755 /tests/test.sh',
      'mkdir /app/mine && ln -s /app/mine /tests && ln -s /app/mine/reward /logs/verifier/reward.txt && echo 1 > /app/mine/reward',
      // A program waits for them, or writes the reward again and again.
      'while :; do echo 1 > /logs/verifier/reward.txt; echo 1 > /logs/verifier/reward.json; done >/dev/null 2>&1 &',
      // Its shell has other commands.
      'printf "cat() { echo 42; }\\nexport -f cat\\nexport EXPECTED=0\\n" > /root/.bashrc; cp /root/.bashrc /etc/profile; cp /root/.bashrc /etc/bash.bashrc; export BASH_ENV=/root/.bashrc',
    ];
    const rewards = await Promise.all(
      attacks.map((attack) =>
        play('answer', async (session) => {
          await bash(session, `echo 0 > /app/answer.txt; ${attack}`, 5);
          return (await session.call('submit')).reward;
        }),
      ),
    );
    expect(rewards).toEqual([0, 0, 0, 0]);
    const shell =
      'cp /usr/bin/bash /usr/bin/real && rm /usr/bin/bash && printf "#!/usr/bin/real\\necho 1 > /logs/verifier/reward.txt\\n" > /usr/bin/bash && chmod 755 /usr/bin/bash';
    await play('answer', async (session) => {
      await bash(session, shell);
      expect(await failure(session)).toContain('The agent changed /usr/bin/bash, with which the tests run.');
    });
  });

  test('the steps of a task follow each other, and a server of the agent may run on, but not write the reward', async () => {
    await play('steps', async (session) => {
      await bash(session, 'echo one > one');
      const next = await session.call('submit');
      expect(next).toMatchObject({ reward: null, finished: false, metadata: { rewards: { reward: 1 } } });
      expect(text(next.blocks)).toBe('Copy /app/hint to /app/two.\n');
      expect(await bash(session, 'cat hint; ls /logs/verifier; ls -d /tests 2>&1')).toContain('of step two\nls: cannot access');
      expect(await session.call('submit')).toMatchObject({ reward: 0.75, finished: true });
    });
    await play('steps', async (session) => expect(await session.call('submit')).toMatchObject({ reward: 0, finished: true }));
    await play('service', async (session) => {
      const cheats = `echo '{"reward": 0.5}' > /logs/verifier/reward.json`;
      await bash(session, `while :; do touch /tmp/beat; ${cheats}; sleep 0.2; done > /dev/null 2>&1 &`);
      expect(await session.call('submit')).toMatchObject({ reward: 1 });
    });
  });

  test('a task whose solution fails is not deployed, and is named', async () => {
    writeFiles(path.join(folder, 'broken'), Object.fromEntries(Object.entries(broken(image!)).map(([name, its]) => [`bad/${name}`, its])));
    const { code, output } = await run('env', 'deploy', 'broken');
    expect(code, output).toBe(1);
    expect(output).toContain('Task bad: its solution gets the reward 0, not 1: error: not sure');
    const { deploys } = (await (
      await fetch(`${palestra.url}/v1/environments/${palestra.namespace}/broken/deploys`, { headers: { 'x-api-key': palestra.apiKey } })
    ).json()) as { deploys: DeployView[] };
    expect(deploys[0]).toMatchObject({ state: 'failed', error: { code: 'build_failed', line: expect.any(Number) } });
    const labels = [`installation=${engine.installation}`, 'role=build'].flatMap((label) => ['--filter', `label=palestra.dev/${label}`]);
    expect(engine.lines('ps', '-a', ...labels, '--format', '{{.Names}}')).toEqual([]);
  });
});
