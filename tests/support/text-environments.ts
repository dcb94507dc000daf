import { defineActionEnvironment, defineEnvironment, tool, z } from '@palestra/environment-kit';

/** Environments for tests of text sessions with every case of a trainer's text. The golden file was recorded on them. */

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
const text = (value: string) => ({ text: value, detail: null, type: 'text' as const });

/** `open` releases calls of `wait`; a new `abacus` waits for `create`. */
export const gates = { open: () => {}, create: Promise.resolve() };

interface State {
  count: number;
}
/** Executions of `count` in all sessions. */
export const executions = { count: 0 };

export const abacus = defineEnvironment<{ id: number }, State>({
  name: 'abacus',
  splits: ['train'],
  tasks: () => [{ id: 0 }, { id: 1 }],
  prompt: ({ task }) => `Task ${task.id}: reckon.`,
  create: () => gates.create.then(() => ({ count: 0 })),
  tools: {
    add: tool({
      description: 'Adds two numbers.',
      input: z.object({ a: z.number(), b: z.number() }),
      run: ({ a, b }) => ({ content: String(a + b), reward: 0.1 }),
    }),
    award: tool({
      description: 'Gives a reward.',
      input: z.object({ points: z.number() }),
      run: ({ points }) => ({ content: 'so be it', reward: points }),
    }),
    look: tool({
      description: 'Shows blocks of two kinds.',
      input: z.object({}),
      run: () => ({
        content: [text('left\n'), { data: pixel, mimeType: 'image/png', detail: null, type: 'image' as const }, text('right ✓')],
      }),
    }),
    say: tool({ description: 'Says it again.', input: z.object({ words: z.string() }), run: ({ words }) => words }),
    count: tool<z.ZodObject<Record<string, never>>, { id: number }, State>({
      description: 'Counts.',
      input: z.object({}),
      run: (_input, { state }) => {
        executions.count += 1;
        state.count += 1;
        return { content: `count ${state.count}`, reward: 1 };
      },
    }),
    wait: tool({
      description: 'Waits.',
      input: z.object({}),
      run: () => new Promise<string>((resolve) => (gates.open = () => resolve('waited'))),
    }),
    boom: tool({ description: 'Raises.', input: z.object({}), run: () => Promise.reject(new Error('the beads\nfell off')) }),
    finish: tool({ description: 'Ends.', input: z.object({}), run: () => ({ content: 'done', reward: 1, finished: true }) }),
  },
});

/** Like OpenEnv's echo: a text. */
export const parrot = defineActionEnvironment({
  name: 'parrot',
  splits: ['train'],
  tasks: () => [{}],
  action: z.object({ message: z.string() }),
  reset: () => ({ observation: { echoed_message: 'ready', message_length: 0 } }),
  step: ({ message }) => {
    if (message === 'fall silent') return { observation: { echoed_message: '', message_length: 0 }, done: true };
    const length = Array.from(message).length;
    return { observation: { echoed_message: message, message_length: length }, reward: length * 0.1 };
  },
});

/** Like OpenEnv's OpenSpiel: a number, and observations with long lists. */
export const maze = defineActionEnvironment({
  name: 'maze',
  splits: ['train'],
  tasks: () => [{}],
  action: z.object({ action_id: z.int(), game_name: z.string().default('catch') }),
  reset: () => ({ observation: { info_state: [], legal_actions: [] } }),
  step: ({ action_id: id }) => ({
    observation: {
      info_state: Array.from({ length: 18 + id }, (_, index) => index / 4),
      legal_actions: [0, 1, 2],
      game_phase: 'playing',
      current_player_id: 0,
      opponent_last_action: id > 1 ? id : null,
    },
    reward: id === 3 ? 1 : 0,
    done: id === 3,
  }),
});

/** Like OpenEnv's FinRL: a list of numbers. */
export const market = defineActionEnvironment({
  name: 'market',
  splits: ['train'],
  tasks: () => [{}],
  action: z.object({ actions: z.array(z.number()) }).meta({ title: 'FinRLAction' }),
  reset: () => ({ observation: { state: [], portfolio_value: 0.5, date: '' } }),
  step: ({ actions }) => {
    const sum = actions.reduce((total, action) => total + action, 0);
    return { observation: { state: actions, portfolio_value: 1000.5 + sum, date: '2026-11-21' }, reward: sum };
  },
});

export const textEnvironments = [abacus, parrot, maze, market];
