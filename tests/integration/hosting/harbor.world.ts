import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export type Files = Record<string, string>;

/** Writes files by their names; scripts are executable. */
export function writeFiles(folder: string, files: Files): string {
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text, { mode: name.endsWith('.sh') ? 0o755 : 0o644 });
  }
  return folder;
}

const under = (folder: string, files: Files): Files =>
  Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]));
const script = (...lines: string[]) => ['#!/bin/bash', ...lines, ''].join('\n');

/** The answer is a file. Its tests give 1 or 0; they crash, hang or write nonsense when the answer says so. */
const answer = (image: string): Files => ({
  'task.toml': `version = "1.0"

[metadata]
difficulty = "easy"

[verifier]
timeout_sec = 3.0
[verifier.env]
EXPECTED = "\${ANSWER:-42}"

[agent]
timeout_sec = 60.0

[environment]
memory = "256M"
allow_internet = false
[environment.env]
GREETING = "hello"
`,
  'instruction.md': '<!-- canary GUID 1234 -->\n\nWrite the answer to /app/answer.txt.\n',
  'environment/Dockerfile': `FROM ${image}\nWORKDIR /app\nCOPY given.txt /app/\n`,
  'environment/given.txt': '6 * 7\n',
  'tests/test.sh': script(
    'answer=$(cat /app/answer.txt)',
    'case "$answer" in',
    '  crash) exit 3 ;;',
    '  hang) sleep 60 ;;',
    '  nonsense) echo very good > /logs/verifier/reward.txt ;;',
    '  "$EXPECTED") echo 1 > /logs/verifier/reward.txt ;;',
    '  *) echo 0 > /logs/verifier/reward.txt ;;',
    'esac',
  ),
  'solution/solve.sh': script('echo $((6 * 7)) > /app/answer.txt'),
});

/** The reward is a part, beside another metric. */
const parts = (image: string): Files => ({
  'task.toml': `schema_version = "1.4"
[task]
name = "acme/parts"
description = "Files that must exist"
[environment]
network_mode = "no-network"
[agent]
user = "user"
`,
  'instruction.md': 'Create the files a, b and c in /tmp.\n',
  'environment/Dockerfile': `FROM ${image}\n`,
  'tests/test.sh': script(
    'n=0; for name in a b c; do [ -e "/tmp/$name" ] && n=$((n + 1)); done',
    'printf \'{"reward": %s, "files": %s}\' "$((n / 3)).$((n * 100 / 3 % 100))" "$n" > /logs/verifier/reward.json',
  ),
  'solution/solve.sh': script('cd /tmp && touch a b c'),
});

/** Its tests need a program that the solution started, and run as another user. */
const service = (image: string): Files => ({
  'task.toml': 'version = "1.0"\n[agent]\nuser = "user"\n[environment]\nallow_internet = false\n',
  'instruction.md': 'Start a program that creates the file /tmp/beat again and again.\n',
  'environment/Dockerfile': `FROM ${image}\n`,
  'tests/test.sh': script(
    'rm -f /tmp/beat; for i in {1..15}; do sleep 0.2; [ -e /tmp/beat ] && break; done',
    '[ -e /tmp/beat ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt',
  ),
  'solution/solve.sh': script('while :; do touch /tmp/beat; sleep 0.2; done > /dev/null 2>&1 &'),
});

/** Two steps; the reward is the mean. */
const steps = (image: string): Files => ({
  'task.toml': `schema_version = "1.4"
[environment]
network_mode = "no-network"
workdir = "/app"
[[steps]]
name = "one"
min_reward = 0.5
[[steps]]
name = "two"
`,
  'environment/Dockerfile': `FROM ${image}\n`,
  'steps/one/instruction.md': 'Write one to /app/one.\n',
  'steps/one/tests/test.sh': script(
    '[ "$(cat /app/one)" = one ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt',
  ),
  'steps/one/solution/solve.sh': script('echo one > /app/one'),
  'steps/two/instruction.md': 'Copy /app/hint to /app/two.\n',
  'steps/two/workdir/setup.sh': script('echo "of step two" > /app/hint'),
  'steps/two/tests/test.sh': script(
    '[ "$(cat /app/two)" = "of step two" ] && echo 1 > /logs/verifier/reward.txt || echo 0.5 > /logs/verifier/reward.txt',
  ),
  'steps/two/solution/solve.sh': script('cp /app/hint /app/two'),
});

/** Every task of the tests, whose solutions are right. */
export const dataset = (image: string): Files => ({
  'README.md': '# Examples\n\nTasks of the tests.\n',
  ...under('answer', answer(image)),
  ...under('parts', parts(image)),
  ...under('service', service(image)),
  ...under('steps', steps(image)),
});

/** One task whose solution is wrong. */
export const broken = (image: string): Files => ({
  ...answer(image),
  'solution/solve.sh': script('echo 41 > /app/answer.txt', 'echo error: not sure >&2'),
});
