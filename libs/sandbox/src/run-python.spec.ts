import { EnvironmentHost, defineEnvironment } from '@palestra/environment-kit';
import { describe, expect, test } from 'vitest';
import { pythonTool } from './python-tool.ts';
import { runPython } from './run-python.ts';

describe('runPython', () => {
  test('returns what a program prints, with its files and standard input', async () => {
    const code = 'import sys\nprint(open("data/a.txt").read(), input(), sys.stdin.read(), end="")\nprint("hm", file=sys.stderr)';
    expect(await runPython(code, { files: { 'data/a.txt': 'ü "\\ \n' }, stdin: 'first\nrest' })).toEqual({
      stdout: 'ü "\\ \n first rest',
      stderr: 'hm\n',
      exitCode: 0,
    });
  });

  test('programs share nothing, and see no name of ours', async () => {
    await runPython('x = 1\nopen("f", "w").write("x")', { files: { a: '' } });
    const { stdout } = await runPython('import os\nprint(sorted(n for n in globals() if n[0] != "_"), os.path.exists("f"))', {
      files: { b: '' },
    });
    expect(stdout).toBe("['os'] False\n");
  });

  test('an exception, an exit code, too much time and too much memory are results', async () => {
    expect(await runPython('1 / 0')).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('ZeroDivisionError') as string });
    expect(await runPython('raise SystemExit(3)')).toMatchObject({ exitCode: 3 });
    expect(await runPython('while True: pass', { timeoutMs: 300 })).toMatchObject({ exitCode: 124 });
    expect(await runPython('x = bytearray(200 << 20)\nimport time\ntime.sleep(5)', { memoryMb: 32 })).toMatchObject({ exitCode: 137 });
  });

  test('options out of range and an aborted signal reject', async () => {
    await expect(runPython('', { timeoutMs: 0 })).rejects.toThrow('timeoutMs must be 1 to 60000, not 0.');
    await expect(runPython('', { memoryMb: 1_000 })).rejects.toThrow('memoryMb must be 1 to 480, not 1000.');
    await expect(runPython('x'.repeat(8_000_001))).rejects.toThrow(RangeError);
    await expect(runPython('', { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough');
  });
});

test('the tool runs a program of the model with the files of the task', async () => {
  const environment = defineEnvironment<{ text: string }>({
    name: 'python',
    splits: ['train'],
    tasks: () => [{ text: 'one two' }],
    prompt: () => 'Count the words of words.txt.',
    tools: { python: pythonTool({ files: ({ task }) => ({ 'words.txt': task.text }) }) },
  });
  const host = new EnvironmentHost([environment]);
  await host.create({ sid: 's', env: null, task: { kind: 'index', split: 'train', index: 0 }, toolsetName: null, secrets: {} });
  const run = async (input: Record<string, unknown>) => JSON.parse((await host.call('s', 'python', input)).text) as unknown;
  expect(await run({ code: 'print(len(open("words.txt").read().split()))' })).toMatchObject({
    output: { blocks: [{ text: '2' }], metadata: { exit_code: 0 }, reward: null },
  });
  expect(await run({ code: 'print("x"); exit(2)' })).toMatchObject({ output: { blocks: [{ text: 'x\n[exit code 2]' }] } });
  expect(await run({ programme: '1' })).toMatchObject({ ok: false, reason: 'input_validation' });
  await host.close();
});
