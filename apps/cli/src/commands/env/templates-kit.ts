import { readFileSync } from 'node:fs';
import { stringify } from 'yaml';

/** Files of a new environment in TypeScript, by path: a short and complete game with its tests. */
export function kitFiles(name: string): Record<string, string> {
  return {
    'package.json': `${JSON.stringify(packageOf(name), null, 2)}\n`,
    'tsconfig.json': `${JSON.stringify(TSCONFIG, null, 2)}\n`,
    '.gitignore': 'node_modules/\n.palestra/\n',
    'openenv.yaml': stringify({
      spec_version: 1,
      name,
      version: '0.1.0',
      description: 'Guess a number with hints higher or lower',
      type: 'space',
      runtime: 'palestra',
      app: 'environment.ts',
      port: 8000,
    }),
    'environment.ts': environment(name),
    'environment.test.ts': TEST,
    'README.md': readme(name),
  };
}

/** The version of this command and of the kit, which are published together. */
function versionRange(): string {
  const file = new URL('../../../package.json', import.meta.url);
  return `^${(JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version}`;
}

const packageOf = (name: string) => ({
  name: name.toLowerCase().replaceAll('_', '-'),
  version: '0.1.0',
  private: true,
  type: 'module',
  engines: { node: '>=20.19' },
  scripts: {
    dev: 'palestra env dev',
    test: 'node --import jiti/register --test environment.test.ts',
    check: 'tsc',
    validate: 'palestra env validate',
    push: 'palestra env push',
    deploy: 'palestra env deploy',
  },
  dependencies: { '@palestra/environment-kit': versionRange() },
  devDependencies: { '@types/node': '^20.19.0', jiti: '^2.7.0', palestra: versionRange(), typescript: '^5.9.0' },
});

const TSCONFIG = {
  compilerOptions: {
    target: 'ES2023',
    module: 'NodeNext',
    strict: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    types: ['node'],
  },
  include: ['*.ts'],
};

const environment = (name: string) => `import { defineEnvironment, type Player, tool, z } from '@palestra/environment-kit';

interface Task {
  /** The number to find. */
  secret: number;
}

interface State {
  guessesLeft: number;
}

const NUMBERS = 1_000;
const GUESSES = 10;

/** Every number is a task of one split. The multiplication by a prime number mixes them. */
function tasksOf(split: string): Task[] {
  const numbers = Array.from({ length: NUMBERS }, (_, index) => (index * 7_919) % NUMBERS);
  return numbers.filter((secret) => (secret % 10 === 0) === (split === 'test')).map((secret) => ({ secret }));
}

/** Players see what a model sees: the prompt, the tools and the results of their calls. */
const expert: Player = {
  name: 'expert',
  description: 'Halves the range with every guess.',
  async play({ call }) {
    let [low, high] = [0, NUMBERS - 1];
    for (;;) {
      const number = Math.floor((low + high) / 2);
      const { text, finished } = await call('guess', { number });
      if (finished) return;
      if (text.startsWith('Higher')) low = number + 1;
      else high = number - 1;
    }
  },
};
const naive: Player = {
  name: 'naive',
  description: 'Counts up from 0.',
  async play({ call }) {
    for (let number = 0; ; number += 1) if ((await call('guess', { number })).finished) return;
  },
};

export default defineEnvironment<Task, State>({
  name: '${name}',
  description: 'Guess a number with hints higher or lower.',
  splits: ['train', 'test'],
  tasks: tasksOf,
  create: () => ({ guessesLeft: GUESSES }),
  prompt: () => \`I think of a whole number from 0 to \${NUMBERS - 1}. Find it with at most \${GUESSES} guesses.\`,
  tools: {
    guess: tool({
      description: 'Guess the number. The answer says whether it is right, higher or lower.',
      input: z.strictObject({ number: z.int().min(0).max(NUMBERS - 1).describe('The number that you guess.') }),
      run({ number }, { task, state }) {
        state.guessesLeft -= 1;
        if (number === task.secret) return { content: 'Right!', reward: 1, finished: true };
        const hint = number < task.secret ? 'Higher.' : 'Lower.';
        if (state.guessesLeft > 0) return { content: \`\${hint} \${state.guessesLeft} guesses left.\`, reward: 0 };
        return { content: \`\${hint} That was the last guess.\`, reward: 0, finished: true };
      },
    }),
  },
  rewardRange: [0, 1],
  // The same task and the same guesses give the same results, so sessions can be forked and restored.
  deterministic: true,
  solve: ({ secret }) => [{ tool: 'guess', input: { number: secret } }],
  players: [naive, expert],
});
`;

const TEST = `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { playTask, validateEnvironment } from '@palestra/environment-kit';
import environment from './environment.ts';

test('the solution of a task has reward 1', async () => {
  const { total, finished } = await playTask(environment, { split: 'train', index: 3 });
  assert.deepEqual({ total, finished }, { total: 1, finished: true });
});

test('a wrong guess gives a hint, and the tenth one ends the episode', async () => {
  const { calls, total } = await playTask(environment, {
    split: 'test',
    index: 0,
    player: {
      name: 'stubborn',
      description: 'Always guesses 999.',
      async play({ call }) {
        while (!(await call('guess', { number: 999 })).finished);
      },
    },
  });
  assert.equal(calls.length, 10);
  assert.match(calls[0]!.text, /^Lower\\. 9 guesses left\\.$/);
  assert.equal(total, 0);
});

test('passes every check of palestra env validate', async () => {
  const { checks } = await validateEnvironment(environment, { playerTasks: 0 });
  assert.deepEqual(
    checks.filter(({ status }) => status !== 'passed'),
    [],
  );
});
`;

const readme = (name: string) => `# ${name}

Guess a number from 0 to 999 with at most ten guesses. The right guess has reward 1.

| command            | does                                                                                 |
| ------------------ | ------------------------------------------------------------------------------------ |
| \`npm run dev\`      | serves the environment, reloads it on save and opens its playground                  |
| \`npm test\`         | runs \`environment.test.ts\`: verified solutions and every check of the validation      |
| \`npm run check\`    | checks the types                                                                     |
| \`npm run validate\` | prints the report: checks, and what the scripted players reach                       |
| \`npm run push\`     | serves it, registers it with the service of \`OPENREWARD_URL\` and sends the report     |
| \`npm run deploy\`   | lets that service build and run it, as a new version                                 |

\`environment.ts\` contains the tasks, the prompt, the tools and the players. A tool returns a reward if the call is
scored, and \`finished: true\` if the episode ends. \`solve\` returns calls that solve a task; only tests and the
validation use it.
`;
