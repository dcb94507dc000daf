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

/** The only tool of an action environment. OpenEnv reserves the name, so no environment has another tool with it. */
export const ACTION_TOOL = 'step';

/** What the agent observes, as JSON. NaN and Infinity become null. */
export type Observation = Record<string, unknown>;

/** The first observation of an episode. */
export interface Opening<Observed = Observation> {
  observation: Observed;
  /** Metadata that is not part of the observation. */
  metadata?: JsonObject | null;
}

/** The result of one action. */
export interface Outcome<Observed = Observation> extends Opening<Observed> {
  /** Null or omitted if this action is not scored. */
  reward?: number | null;
  /** Ends the episode. Later actions are refused. */
  done?: boolean;
}

/** Keys of a definition that an action environment derives. */
type DerivedKeys = 'tools' | 'taskTools' | 'toolsets' | 'prompt' | 'messages' | 'setup';
type OmitEach<T, Keys extends PropertyKey> = T extends unknown ? Omit<T, Keys> : never;

export type ActionEnvironmentDefinition<
  Action extends z.ZodType,
  Task,
  State,
  Observed extends z.ZodType = z.ZodType<Observation>,
> = OmitEach<EnvironmentDefinition<Task, State>, DerivedKeys> & {
  /** Schema of an action, an object. An invalid action is a mistake of the agent and does not reach `step`. */
  action: Action;
  /** Schema of every observation. An invalid observation is a failure of the environment. Default: any object. */
  observation?: Observed;
  /** Description for the agent, with the schema of an action. */
  instructions?: string;
  /** Begins the episode, once per session, after `create`. It can be slow: other requests wait. */
  reset(session: Session<Task, State>): Awaitable<Opening<z.input<Observed>>>;
  /** Takes one action. Actions of a session run one after another. An exception is a failure of the environment. */
  step(action: z.output<Action>, session: Session<Task, State>): Awaitable<Outcome<z.input<Observed>>>;
};

/**
 * Defines an environment with actions instead of tools, like those of Gymnasium and OpenEnv. Clients see an environment with the one tool
 * `step`: its arguments are the action, its result is a text block with the JSON of the observation. The prompt is the JSON of the first
 * observation.
 */
export function defineActionEnvironment<
  Action extends z.ZodType,
  Task,
  State = undefined,
  Observed extends z.ZodType = z.ZodType<Observation>,
>(definition: ActionEnvironmentDefinition<Action, Task, State, Observed>): Environment {
  const { action, observation: schema, instructions, reset, step, ...rest } = definition;
  // Keyed by the session object that every callback of an episode gets.
  const openings = new WeakMap<Session<Task, State>, Opening>();
  const check = (seen: unknown) => toJson(schema ? schema.parse(seen) : seen);

  const toResult = ({ observation, reward = null, done = false, metadata = null }: Outcome<z.input<Observed>>): ToolResult => ({
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
