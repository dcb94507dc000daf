import { spawn } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import type { ExecRequest } from '../../sandbox/sandbox.port.ts';
import { commandLine, inputLines, SHELL } from './command-line.ts';

/** Runs a command as a container does. */
async function run(shell: string, given: Partial<ExecRequest> & Pick<ExecRequest, 'command'>) {
  const child = spawn(shell, SHELL.slice(1), { argv0: '/bin/sh', env: { PATH: process.env['PATH'], IN_IMAGE: 'yes' } });
  const output: Buffer[] = [];
  let said = '';
  child.stdout.on('data', (bytes: Buffer) => output.push(bytes));
  child.stderr.on('data', (bytes: Buffer) => (said += bytes.toString()));
  const { stdin } = given;
  child.stdin.on('error', () => {});
  child.stdin.write(commandLine({ timeoutMs: 1_000, maxBytes: 1_000, ...given }, stdin !== undefined));
  // Without an end: a cluster cannot tell it.
  if (stdin !== undefined) for await (const bytes of inputLines(stdin)) child.stdin.write(bytes);
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, said: said.split('\n'), output: Buffer.concat(output), pid: child.pid };
}

describe.each(['/bin/sh', '/bin/bash'])('commands where /bin/sh is %s', (shell) => {
  test('arguments and variables arrive as they are, and the shell tells the process and its end', async () => {
    const odd = `it's "$HOME"\n\`id\` \\n $(id) * é\n`;
    const command = ['sh', '-c', 'printf "%s|%s|%s|%s" "$1" "$ODD" "$IN_IMAGE" "$(pwd)"; exit 7', 'sh', odd];
    const { code, said, output, pid } = await run(shell, { command, variables: { ODD: odd }, folder: '/usr/bin' });
    expect(output.toString()).toBe(`${odd}|${odd}|yes|/usr/bin`);
    expect(said).toEqual([`pid ${pid}`, 'exit 7', '']);
    expect(code).toBe(7);
  });

  test('the input has an end, and may be larger than what the command reads', async () => {
    const bytes = Buffer.alloc(3 * 2 ** 20 + 17, 'a\nb\0');
    expect((await run(shell, { command: ['cat'], stdin: bytes })).output.equals(bytes)).toBe(true);
    expect((await run(shell, { command: ['cat'], stdin: Buffer.alloc(0) })).output.length).toBe(0);
    expect((await run(shell, { command: ['cat'] })).output.length).toBe(0);
    const { code, output } = await run(shell, { command: ['sh', '-c', 'head -c 2; exit 3'], stdin: bytes });
    expect([code, output.toString()]).toEqual([3, 'a\n']);
  });

  test('errors come in order with the output, or not at all, and a missing program has status 127', async () => {
    const command = ['sh', '-c', 'echo 1; echo 2 >&2; echo 3'];
    expect((await run(shell, { command })).output.toString()).toBe('1\n2\n3\n');
    expect((await run(shell, { command, stdoutOnly: true })).output.toString()).toBe('1\n3\n');
    expect((await run(shell, { command: ['/no/such'] })).code).toBe(127);
    const killed = await run(shell, { command: ['sh', '-c', 'kill -9 $$'] });
    expect([killed.code, killed.said.at(-2)]).toEqual([137, 'exit 137']);
  });
});
