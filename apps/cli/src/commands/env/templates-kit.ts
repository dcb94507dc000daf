import { stringify } from 'yaml';

/** Files of a new environment in TypeScript, by path: a short and complete game. */
export function kitFiles(name: string): Record<string, string> {
  return {
    'package.json': `${JSON.stringify(packageOf(name), null, 2)}\n`,
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
    'README.md': readme(name),
  };
}

const packageOf = (name: string) => ({
  name: name.toLowerCase().replaceAll('_', '-'),
  version: '0.1.0',
  private: true,
  type: 'module',
  scripts: { start: 'palestra env serve', validate: 'palestra env validate', push: 'palestra env push' },
});

const environment = (name: string) => `import { defineEnvironment, tool, z } from '@palestra/environment-kit';

interface Task {
  id: number;
  /** The number to find. */
  secret: number;
}

interface State {
  guessesLeft: number;
}

const LIMIT = 100;
const GUESSES = 7;

/** The task of an index. The multiplication spreads the numbers over the range. */
function taskOf(split: string, index: number): Task {
  const id = split === 'train' ? index : 1_000 + index;
  return { id, secret: (id * 7_919) % (LIMIT + 1) };
}

export default defineEnvironment<Task, State>({
  name: '${name}',
  description: 'Guess a number with hints higher or lower.',
  splits: ['train', 'test'],
  tasks: (split) => Array.from({ length: split === 'train' ? 1_000 : 100 }, (_, index) => taskOf(split, index)),
  create: () => ({ guessesLeft: GUESSES }),
  prompt: () => \`I think of a whole number from 0 to \${LIMIT}. Find it with at most \${GUESSES} guesses.\`,
  tools: {
    guess: tool({
      description: 'Guess the number. The answer says whether it is right, higher or lower.',
      input: z.object({ number: z.int().min(0).max(LIMIT) }),
      run({ number }, { task, state }) {
        state.guessesLeft -= 1;
        if (number === task.secret) return { content: 'Right!', reward: 1, finished: true };
        const hint = number < task.secret ? 'Higher.' : 'Lower.';
        if (state.guessesLeft > 0) return { content: \`\${hint} \${state.guessesLeft} guesses left.\`, reward: 0 };
        return { content: \`\${hint} That was the last guess.\`, reward: 0, finished: true };
      },
    }),
  },
  // The same task and the same guesses give the same results, so episodes can be replayed.
  deterministic: true,
});
`;

const readme = (name: string) => `# ${name}

Guess a number from 0 to 100 with at most seven guesses. The right guess has reward 1.

| command                  | does                                                            |
| ------------------------ | --------------------------------------------------------------- |
| \`palestra env validate\`  | loads the environment, counts its tasks and opens the first one |
| \`palestra env serve\`     | serves it with the Open Reward Standard                         |
| \`palestra env push\`      | serves it and registers it with the server of \`PALESTRA_URL\`    |

\`environment.ts\` contains the tasks, the prompt and the tools. A tool returns a reward if the call is scored, and
\`finished: true\` if the episode ends.
`;
