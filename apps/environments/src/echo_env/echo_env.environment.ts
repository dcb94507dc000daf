import { defineActionEnvironment, z } from '@palestra/environment-kit';

const REWARD_PER_CHARACTER = 0.1;

const readme = `# echo_env

OpenEnv's echo environment, by its first wire shape: a client of any generation can be tried with it.

| action | observation |
|---|---|
| \`{"message": "hello"}\` | \`{"echoed_message": "hello", "message_length": 5}\` |

Reward: 0.1 a character. Never done. The environment \`echo\` is the same with a named tool instead of actions.
`;

/** Says back what it is told. Lengths are in code points, as Python counts. */
export const echoEnv = defineActionEnvironment({
  name: 'echo_env',
  description: 'Says back what it is told, for 0.1 a character, and never ends. OpenEnv’s echo_env.',
  readme,
  splits: ['train'],
  tasks: () => [{}],
  deterministic: true,
  action: z.object({ message: z.string() }),
  observation: z.object({ echoed_message: z.string(), message_length: z.int() }),
  instructions: 'Says the message back.',
  create: () => ({ steps: 0 }),
  reset: () => ({ observation: { echoed_message: 'Echo environment ready!', message_length: 0 } }),
  step({ message }, { state }) {
    const length = [...message].length;
    state.steps += 1;
    return {
      observation: { echoed_message: message, message_length: length },
      reward: length * REWARD_PER_CHARACTER,
      metadata: { original_message: message, step: state.steps },
    };
  },
});
