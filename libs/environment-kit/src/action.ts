import type { JsonObject } from '@palestra/protocol';
import type { z } from 'zod';
import {
  defineEnvironment,
  type Environment,
  type EnvironmentDefinition,
  type Session,
  textBlock,
  tool,
  type ToolResult,
} from './definition.ts';

type Awaitable<T> = T | Promise<T>;

/** The tool that an action environment consists of. OpenEnv reserves the name, so that no environment has another tool of it. */
export const ACTION_TOOL = 'step';

/** What an agent sees: anything that JSON can say. A number that JSON has not (NaN, Infinity) becomes null. */
export type Observation = Record<string, unknown>;

/** The beginning of an episode. */
export interface Opening<Seen = Observation> {
  observation: Seen;
  /** Beside the observation: not for the agent. */
  metadata?: JsonObject | null;
}

/** The result of one action. */
export interface Outcome<Seen = Observation> extends Opening<Seen> {
  /** null or left out: this action is not scored. */
  reward?: number | null;
  /** Ends the episode: every later action is refused. */
  done?: boolean;
}

/** What is chosen for a tool environment, but made here for an action environment. */
type Made = 'tools' | 'taskTools' | 'toolsets' | 'prompt' | 'messages' | 'setup';
type OmitEach<T, Keys extends PropertyKey> = T extends unknown ? Omit<T, Keys> : never;

export type ActionEnvironmentDefinition<Action extends z.ZodType, Task, State, Seen extends z.ZodType = z.ZodType<Observation>> = OmitEach<
  EnvironmentDefinition<Task, State>,
  Made
> & {
  /** One action, an object. What does not match is answered as a mistake of the agent; `step` does not hear of it. */
  action: Action;
  /** Every observation; one that does not match is a failure of the environment. Left out: any object. */
  observation?: Seen;
  /** Told to the agent together with the schema of an action. */
  instructions?: string;
  /** Begins the episode, once per session, after `create`. May be slow: whatever is asked meanwhile waits. */
  reset(session: Session<Task, State>): Awaitable<Opening<z.input<Seen>>>;
  /** Takes one action; actions of a session come one after another. Throwing means that the environment itself failed. */
  step(action: z.output<Action>, session: Session<Task, State>): Awaitable<Outcome<z.input<Seen>>>;
};

/**
 * An environment that takes actions instead of offering tools, as Gymnasium's and OpenEnv's do. To every client it is an ordinary environment
 * with the one tool `step`, whose arguments are the action and whose result is one text block: the JSON of the observation. The prompt is the
 * JSON of the first observation.
 */
export function defineActionEnvironment<Action extends z.ZodType, Task, State = undefined, Seen extends z.ZodType = z.ZodType<Observation>>(
  definition: ActionEnvironmentDefinition<Action, Task, State, Seen>,
): Environment {
  const { action, observation: schema, instructions, reset, step, ...rest } = definition;
  // Of the same object that every callback of an episode gets; gone with it.
  const openings = new WeakMap<Session<Task, State>, Opening>();
  const check = (seen: unknown) => toJson(schema ? schema.parse(seen) : seen);

  const toResult = ({ observation, reward = null, done = false, metadata = null }: Outcome<z.input<Seen>>): ToolResult => ({
    content: JSON.stringify(check(observation)),
    reward,
    finished: done,
    metadata,
  });

  return defineEnvironment<Task, State>({
    ...rest,
    async setup(session: Session<Task, State>) {
      const { observation, metadata = null } = await reset(session);
      openings.set(session, { observation: check(observation), metadata });
    },
    prompt(session: Session<Task, State>) {
      const { observation, metadata } = openings.get(session)!;
      return textBlock(JSON.stringify(observation), metadata);
    },
    tools: {
      [ACTION_TOOL]: tool<Action, Task, State>({
        description: instructions ?? `Takes one action in ${definition.name}; the result is what can be observed then.`,
        input: action,
        run(taken, session): Awaitable<ToolResult> {
          const outcome = step(taken, session);
          return outcome instanceof Promise ? outcome.then(toResult) : toResult(outcome);
        },
      }),
    },
  } as unknown as EnvironmentDefinition<Task, State>);
}

function toJson(seen: unknown): Observation {
  if (typeof seen !== 'object' || seen === null || Array.isArray(seen)) throw new TypeError('an observation must be an object');
  return seen as Observation;
}
