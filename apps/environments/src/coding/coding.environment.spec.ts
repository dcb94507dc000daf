import { EnvironmentHost, playTask, type Player } from '@palestra/environment-kit';
import { describe, expect, test } from 'vitest';
import { coding } from './coding.environment.ts';
import { exerciseOf, type CodingTask, tasks, testsOf, toPython } from './tasks.ts';

const PATIENCE_MS = 120_000;
const task: CodingTask = { family: 'run_lengths', variant: 0 };
const submitting = (code: string): Player => ({
  name: 'test',
  description: 'Submits one program.',
  play: async ({ call }) => void (await call('submit', { code })),
});
const submit = async (code: string) => {
  const { calls, total, finished } = await playTask(coding, { task, player: submitting(code) });
  return { text: calls[0]!.text, total, finished };
};

describe('coding', () => {
  test('refuses an exercise that does not exist', async () => {
    const host = new EnvironmentHost([coding]);
    for (const spec of [{ family: 'run_lengths', variant: 99 }, { family: 'none', variant: 0 }, {}]) {
      const created = host.create({ sid: 'bad', env: null, task: { kind: 'spec', spec }, toolsetName: null, secrets: {} });
      await expect(created).rejects.toMatchObject({ code: 'environment_failed' });
    }
    await host.close();
  });

  test('states the task, examples, limits and turns, and no hidden test', { timeout: PATIENCE_MS }, async () => {
    const reading: Player = { name: 'test', description: 'Reads the prompt.', play: async () => {} };
    for (const stated of [task, ...tasks['test']!.slice(0, 20)]) {
      const { prompt } = await playTask(coding, { task: stated, player: reading });
      const { examples, hidden } = testsOf(stated);
      expect(prompt).toContain(exerciseOf(stated).statement);
      for (const { args, expected } of examples) expect(prompt).toContain(`(${args.map(toPython).join(', ')}) == ${toPython(expected)}`);
      const long = hidden.filter(({ args }) => JSON.stringify(args).length > 20);
      for (const { args } of long) expect(prompt).not.toContain(args.map(toPython).join(', '));
      for (const text of ['You have 10 turns', `${hidden.length} hidden tests`, '2 seconds']) expect(prompt).toContain(text);
    }
  });

  test('gives 1 for the solution, and half of the share of passed tests for another program', { timeout: PATIENCE_MS }, async () => {
    expect(await submit(exerciseOf(task).python)).toEqual({ text: 'All 11 hidden tests passed.', total: 1, finished: true });
    // Right for texts of one character and for none.
    const half = await submit('def solve(text):\n    return f"1{text}" if text else ""');
    expect(half).toMatchObject({ text: '2 of 11 hidden tests passed; wrong results: 9.', total: 0.0909 });
    expect(await submit('def solve(text): return 1 / 0')).toMatchObject({ text: expect.stringContaining('errors: 11'), total: 0 });
    expect(await submit('def solve(:')).toMatchObject({ text: expect.stringContaining('SyntaxError'), total: 0 });
    expect(await submit('solve = 3')).toMatchObject({ total: 0 });
  });

  test('gives nothing to programs that attack what runs them', { timeout: PATIENCE_MS }, async () => {
    const attacks = [
      'import sys; sys.exit(0)',
      'import os\ndef solve(text): os._exit(0)',
      // Equal to everything, but not as JSON.
      'class Any(str):\n    def __eq__(self, other): return True\n    __hash__ = None\ndef solve(text): return Any("x")',
      // All the frames and objects of the interpreter.
      'import gc, sys, json\ndef solve(text):\n    frame = sys._getframe()\n    found = []\n    while frame:\n        found.append({k: repr(v) for k, v in frame.f_locals.items()})\n        frame = frame.f_back\n    return json.dumps(found)[:9000]',
      "import json\njson.dumps = lambda value: 'true'\ndef solve(text): return text",
      'import builtins\nbuiltins.print = lambda *args: None\ndef solve(text): return text',
      'def solve(text):\n    import sys\n    sys.stdout = sys.__stdout__\n    print("\\n".join(["passed"] * 50))\n    return None',
      'import io\nio.StringIO = None\ndef solve(text): return "a"',
    ];
    for (const attack of attacks) expect((await submit(attack)).total, attack).toBe(0);
  });

  test('has no expected value in the process of the program', { timeout: PATIENCE_MS }, async () => {
    // The largest run of the hidden texts: the result of the last test.
    const seeker = `import gc\ndef solve(text):\n    return "found" if any("8000k" in str(one) for one in gc.get_objects() if isinstance(one, (str, list, dict, tuple))) and len(text) == 8000 else "no"`;
    expect(testsOf(task).hidden.at(-1)!.expected).toBe('8000k');
    expect(await submit(seeker)).toMatchObject({ total: 0 });
  });

  test('stops grading after a test that takes too long', { timeout: PATIENCE_MS }, async () => {
    const { text, total } = await submit(`${exerciseOf(task).python.replace('def solve', 'def right')}
def solve(text):
    while len(text) > 100: pass
    return right(text)`);
    expect(text).toBe('9 of 11 hidden tests passed; out of time: 2.');
    expect(total).toBeCloseTo((0.5 * 9) / 11, 3);
  });

  test('runs programs nine times, and nothing of them is there for the submission', { timeout: PATIENCE_MS }, async () => {
    const texts: string[] = [];
    const player: Player = {
      name: 'test',
      description: 'Tries code.',
      async play({ call }) {
        texts.push((await call('run', { code: `${exerciseOf(task).python}\nprint(solve("aab"))` })).text);
        for (let run = 0; run < 9; run += 1) texts.push((await call('run', { code: 'print(solve("b"), 1 / 0)' })).text);
        texts.push((await call('submit', { code: 'def helper(): pass' })).text);
      },
    };
    const { total, finished } = await playTask(coding, { task, player });
    expect(texts[0]).toBe('exit code: 0\nstdout:\n2a1b\nruns left: 8');
    expect(texts[1]).toMatch(/^exit code: 1\nstderr:\nTraceback[^]*ZeroDivisionError: division by zero\nruns left: 7$/);
    expect(texts[9]).toBe('You have no runs left. Submit your program.');
    expect(texts[10]).toBe('0 of 11 hidden tests passed; errors: 11.');
    expect({ total, finished }).toEqual({ total: 0, finished: true });
  });

  test('the players are as good as they should be', { timeout: 2 * PATIENCE_MS }, async () => {
    const mean = async (name: string) => {
      const player = coding.players!.find((one) => one.name === name)!;
      let sum = 0;
      for (let index = 0; index < 6; index += 1) sum += (await playTask(coding, { split: 'test', index, player })).total;
      return sum / 6;
    };
    const [random, naive, expert] = [await mean('random'), await mean('naive'), await mean('expert')];
    expect(expert).toBe(1);
    expect(random).toBeLessThan(0.2);
    expect(naive).toBeGreaterThan(random);
    expect(naive).toBeLessThan(0.8);
  });
});
