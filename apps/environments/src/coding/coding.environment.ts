import { defineEnvironment, tool } from '@palestra/environment-kit';
import { isolation, type ProgramResult, PythonConsole, requireSandbox } from '@palestra/sandbox';
import { z } from 'zod';
import { readme } from './card.ts';
import { grade, TEST_LIMITS, type Verdict } from './grader.ts';
import { players } from './players.ts';
import { type CodingTask, exerciseOf, SPLITS, taskSchema, tasks, testsOf, toPython } from './tasks.ts';

const LONGEST_PROGRAM_CHARACTERS = 50_000;
const TURNS = 10;
/** Reward of a program that passes every hidden test but some, as a share of those it passes. */
const PARTIAL_REWARD = 0.5;

const code = z.string().max(LONGEST_PROGRAM_CHARACTERS);

interface State {
  console: PythonConsole;
  runsLeft: number;
}

export const coding = defineEnvironment<CodingTask, State>({
  name: 'coding',
  description: 'Programming tasks in Python with hidden tests: write a function, try it, submit it.',
  readme,
  splits: [...SPLITS],
  tasks: (split) => tasks[split]!,
  rewardRange: [0, 1],
  players,
  solve: (task) => [{ tool: 'submit', input: { code: exerciseOf(task).python } }],
  async create({ task, signal }) {
    exerciseOf(taskSchema.parse(task));
    requireSandbox(await isolation());
    return { console: new PythonConsole(signal), runsLeft: TURNS - 1 };
  },
  setup: ({ state }) => state.console.warmUp(),
  prompt: ({ task }) => statementOf(task),
  teardown: ({ state }) => state.console.close(),
  tools: {
    run: tool({
      description: 'Runs a Python program and shows what it prints. Names that it defines are there in the next run.',
      input: z.object({ code: code.describe('A Python program') }),
      mode: 'exclusive',
      async run({ code: program }, { state }) {
        if (state.runsLeft === 0) return 'You have no runs left. Submit your program.';
        state.runsLeft -= 1;
        return describe(await state.console.run(program), state.runsLeft);
      },
    }),
    submit: tool({
      description: 'Submits the program that defines solve, for the hidden tests. You have one attempt; it ends the episode.',
      input: z.object({ code: code.describe('The whole Python program') }),
      mode: 'exclusive',
      async run({ code: program }, { task, state, signal }) {
        // Nothing that was run before is there.
        await state.console.close();
        const fresh = new PythonConsole(signal, TEST_LIMITS);
        try {
          const { verdicts, failure } = await grade(fresh, program, testsOf(task).hidden);
          const passed = count(verdicts, 'passed');
          const solved = passed === verdicts.length;
          const reward = solved ? 1 : Math.round(((PARTIAL_REWARD * passed) / verdicts.length) * 1e4) / 1e4;
          const metadata = {
            passed,
            tests: verdicts.length,
            wrong: count(verdicts, 'wrong'),
            failed: count(verdicts, 'error'),
            timed_out: count(verdicts, 'time'),
          };
          return { content: summarise(verdicts, failure), reward, finished: true, metadata };
        } finally {
          await fresh.close();
        }
      },
    }),
  },
});

function statementOf(task: CodingTask): string {
  const { parameters, statement } = exerciseOf(task);
  const { examples, hidden } = testsOf(task);
  const shown = examples.map(({ args, expected }) => `solve(${args.map(toPython).join(', ')}) == ${toPython(expected)}`);
  return `Write the Python function \`solve(${parameters})\`.

${statement}

Examples:

\`\`\`python
${shown.join('\n')}
\`\`\`

The program that you submit is checked with ${hidden.length} hidden tests, some of them with the largest inputs allowed above. Each may take ${
    TEST_LIMITS.cpuMs / 1000
  } seconds of processor time. Only the standard library of Python is there, without network. Numbers in results are whole, and a list may be returned as a list or tuple.

You have ${TURNS} turns: up to ${TURNS - 1} calls of \`run\` to try code, and one call of \`submit\` with the whole program. \`submit\` ends the episode.`;
}

const count = (verdicts: Verdict[], verdict: Verdict): number => verdicts.filter((one) => one === verdict).length;

function summarise(verdicts: Verdict[], failure: string | null): string {
  if (failure !== null) return `The program failed before the first test:\n${failure}`;
  const passed = count(verdicts, 'passed');
  if (passed === verdicts.length) return `All ${passed} hidden tests passed.`;
  const others = (['wrong', 'error', 'time'] as const).flatMap((verdict) => {
    const number = count(verdicts, verdict);
    const what = { wrong: 'wrong results', error: 'errors', time: 'out of time' }[verdict];
    return number === 0 ? [] : [`${what}: ${number}`];
  });
  return `${passed} of ${verdicts.length} hidden tests passed; ${others.join(', ')}.`;
}

function describe({ stdout, stderr, exitCode }: ProgramResult, runsLeft: number): string {
  const parts = [`exit code: ${exitCode}`];
  if (stdout !== '') parts.push(`stdout:\n${stdout.trimEnd()}`);
  if (stderr !== '') parts.push(`stderr:\n${stderr.trimEnd()}`);
  parts.push(`runs left: ${runsLeft}`);
  return parts.join('\n');
}
