import { isDeepStrictEqual } from 'node:util';
import { PROGRAM_LIMITS, type PythonConsole } from '@palestra/sandbox';
import type { Json } from './families/family.ts';
import type { Test } from './tasks.ts';

/** Limits of one hidden test. */
export const TEST_LIMITS = { ...PROGRAM_LIMITS, cpuMs: 2_000, wallMs: 10_000 };
/** No further test begins after the program and its tests ran for this time. Waits for other programs do not count. */
const GRADING_MS = 60_000;
/** Exit code of a program that was stopped because of its time. */
const TIMED_OUT = 124;

export type Verdict = 'passed' | 'wrong' | 'error' | 'time';
export interface Grade {
  /** One per test, in order. */
  verdicts: Verdict[];
  /** The error output of a program that fails before its first test. */
  failure: string | null;
}

/**
 * Runs the program, then each test in the same interpreter, and compares the results here. The interpreter gets the arguments of one test
 * at a time and never an expected value, so a program gains nothing by reading or changing what runs it. After a test that takes too long
 * the remaining ones count as `time`, because they are larger. Rejects if the machine ended the interpreter: that is no fault of the program.
 */
export async function grade(console: Pick<PythonConsole, 'run'>, code: string, tests: Test[]): Promise<Grade> {
  const started = await console.run(code);
  if (started.isInterrupted) throw interrupted();
  let ranMs = started.ranMs;
  if (started.exitCode !== 0) {
    const verdict = started.exitCode === TIMED_OUT ? 'time' : 'error';
    return { verdicts: tests.map(() => verdict), failure: started.stderr };
  }
  const verdicts: Verdict[] = [];
  for (const { args, expected } of tests) {
    if (verdicts.at(-1) === 'time' || ranMs > GRADING_MS) verdicts.push('time');
    else {
      const { stdout, exitCode, ...run } = await console.run(callOf(args));
      if (run.isInterrupted) throw interrupted();
      ranMs += run.ranMs;
      if (exitCode === TIMED_OUT) verdicts.push('time');
      else if (exitCode !== 0) verdicts.push('error');
      else verdicts.push(isDeepStrictEqual(parseResult(stdout), expected) ? 'passed' : 'wrong');
    }
  }
  return { verdicts, failure: null };
}

const interrupted = () => new Error('All programs together took too much memory, so that this one could not be graded. Submit it again.');

/** A program that prints the JSON of the result, and nothing that `solve` prints. JSON text is a valid Python literal. */
function callOf(args: Json[]): string {
  return `import io, json, sys
_shown, sys.stdout = sys.stdout, io.StringIO()
try:
    _result = json.dumps(solve(*json.loads(${JSON.stringify(JSON.stringify(args))})))
finally:
    sys.stdout = _shown
print(_result)`;
}

/** The value of the last line. undefined: it is no JSON, which equals no expected value. */
function parseResult(stdout: string): unknown {
  try {
    return JSON.parse(stdout.trimEnd().split('\n').at(-1)!);
  } catch {
    return undefined;
  }
}
