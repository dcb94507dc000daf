import {
  type GroupCandidate,
  type GroupScore,
  type JsonObject,
  type Message,
  type OutputBlock,
  type Split,
  SPLIT_TYPES,
} from '@palestra/protocol';
import type { z } from 'zod';
import type { Player, ToolInput } from './play/player.ts';

type Awaitable<T> = T | Promise<T>;

/** The session that every callback of an environment gets. */
export interface Session<Task, State> {
  readonly sid: string;
  readonly task: Task;
  /** Decoded secrets of the client by name. Empty if it sent none. */
  readonly secrets: Readonly<Record<string, string>>;
  /** The result of `create`. Callbacks can change or replace it. */
  state: State;
  /** Aborts when the session is deleted or expires. Callbacks should stop then. */
  readonly signal: AbortSignal;
}

export interface ToolResult {
  /** Blocks, one block, or a text. Default: no blocks. */
  content?: string | OutputBlock | OutputBlock[];
  /** Reward of this call; null (not 0) if the call is not scored. */
  reward?: number | null;
  /** Ends the episode. Later calls are refused with `episode_finished`. */
  finished?: boolean;
  metadata?: JsonObject | null;
}
/** The return value of a tool. A text is a result without reward. */
export type ToolReturn = string | OutputBlock | OutputBlock[] | ToolResult;

export interface Tool<Task, State> {
  /** Tells the policy when and how to use the tool. Some harnesses refuse an empty description. */
  description: string;
  /** Validates the arguments. Its JSON Schema, of type object, is published. Omitted: no arguments. */
  input?: z.ZodType;
  /** Published instead of the schema derived from `input`. */
  inputSchema?: JsonObject;
  /**
   * How calls of this tool overlap in one session. `serial` (default): one after another, concurrently with other tools.
   * `concurrent`: without limit, for tools that never return a reward. `exclusive`: waits for running calls and delays new ones.
   */
  mode?: 'serial' | 'concurrent' | 'exclusive';
  /** Can run again if its outcome is unknown, because it reads only or a second run changes nothing. */
  idempotent?: boolean;
  /** Can be called but is not listed. */
  unlisted?: boolean;
  /**
   * The harness ends the episode by passing the last message of the policy to this tool. It is not listed, takes at most one
   * argument and is always exclusive. An environment has at most one.
   */
  terminal?: boolean;
  /** An exception means that the tool failed. Return a normal result for a mistake of the policy. */
  run(input: never, session: Session<Task, State>): Awaitable<ToolReturn>;
}

interface ToolOptions<Input extends z.ZodType, Task, State> extends Omit<Tool<Task, State>, 'run' | 'input'> {
  input?: Input;
  run(input: z.output<Input>, session: Session<Task, State>): Awaitable<ToolReturn>;
}

/** Defines a tool. Its schema determines the type of the arguments of `run`. */
export function tool<Input extends z.ZodType, Task, State>(options: ToolOptions<Input, Task, State>): Tool<Task, State> {
  return options as unknown as Tool<Task, State>;
}

export type Tools<Task, State> = Record<string, Tool<Task, State>>;

interface DefinitionBase<Task, State> {
  /** Case-insensitive. */
  name: string;
  description?: string;
  /** Markdown card. */
  readme?: string;
  /** A name other than train, validation and test has the type validation. */
  splits: (string | Split)[];
  /** The same task and calls give the same results, so Palestra can replay an episode. */
  deterministic?: boolean;
  /** Fast initialisation. `/create` waits for it and responds with its error. */
  create?(session: Session<Task, undefined>): Awaitable<State>;
  /** Slow initialisation in the background. Prompt and calls wait for it and respond with its error. */
  setup?(session: Session<Task, State>): Awaitable<void>;
  /** Runs once when the session ends. Its errors are only logged. */
  teardown?(session: Session<Task, State>): Awaitable<void>;
  tools?: Tools<Task, State>;
  /** Additional tools of this task, in this order. Called once, possibly before `setup` has ended. */
  taskTools?(session: Session<Task, State>): Awaitable<Tools<Task, State>>;
  /**
   * Sets of tools of agent harnesses. A client can choose one by name for its session. Its tools replace tools with the same names and are
   * listed last. Called after `create`; an exception is a 400 of `/create`, for example for a task without a sandbox.
   */
  toolsets?: Record<string, (session: Session<Task, State>) => Awaitable<Tools<Task, State>>>;
  /** Returns one score per candidate, in order. Throw if the judge fails. */
  scoreGroup?(candidates: GroupCandidate[], session: Session<Task, State>): Awaitable<(number | GroupScore)[]>;
  /** Smallest and largest total reward of an episode. Validation assumes [0, 1] without it. */
  rewardRange?: readonly [number, number];
  /** Returns calls that reach the maximum reward of the task. Only tests and `palestra env validate` use it; no client sees it. */
  solve?(task: Task): Awaitable<readonly ToolInput[]>;
  /** The prompt contains the answer by design, as in reading comprehension. Validation does not report it as a leak then. */
  answersInPrompt?: boolean;
  /** Scripted policies. `palestra env validate` reports what they reach. */
  players?: readonly Player[];
}

/** All tasks of a split; the list is cached. */
interface ListedTasks<Task> {
  tasks(split: string): Awaitable<readonly Task[]>;
  numTasks?: undefined;
  task?: undefined;
}
/** Tasks on demand. `task` throws a RangeError for an invalid index. */
interface IndexedTasks<Task> {
  tasks?: undefined;
  numTasks(split: string): Awaitable<number>;
  task(split: string, index: number): Awaitable<Task>;
}

/** An environment has a prompt or a conversation. Clients can request either form. */
interface Prompted<Task, State> {
  prompt(session: Session<Task, State>): Awaitable<string | OutputBlock | OutputBlock[]>;
  messages?: undefined;
}
interface Conversation<Task, State> {
  prompt?: undefined;
  messages(session: Session<Task, State>): Awaitable<Message[]>;
}

export type EnvironmentDefinition<Task, State> = DefinitionBase<Task, State> &
  (ListedTasks<Task> | IndexedTasks<Task>) &
  (Prompted<Task, State> | Conversation<Task, State>);

/** A checked definition without its task and state types. */
export interface Environment extends Omit<DefinitionBase<never, never>, 'splits'> {
  splits: Split[];
  tasks?(split: string): Awaitable<readonly unknown[]>;
  numTasks?(split: string): Awaitable<number>;
  task?(split: string, index: number): Awaitable<unknown>;
  prompt?(session: Session<never, never>): Awaitable<string | OutputBlock | OutputBlock[]>;
  messages?(session: Session<never, never>): Awaitable<Message[]>;
}

const splitTypes: ReadonlySet<string> = new Set(SPLIT_TYPES);

function toSplit(split: string | Split): Split {
  if (typeof split !== 'string') return split;
  return { name: split, type: splitTypes.has(split) ? (split as Split['type']) : 'validation' };
}

/**
 * Defines an environment. Throws for definitions that would fail in every session: no split, no tool, two terminal tools, a
 * terminal tool with several arguments, or a tool schema that is not an object.
 */
export function defineEnvironment<Task, State = undefined>(definition: EnvironmentDefinition<Task, State>): Environment {
  const { name } = definition;
  if (!/^[\w-]+$/.test(name)) throw new Error(`environment name ${JSON.stringify(name)} may hold letters, digits, _ and - only`);
  if (definition.splits.length === 0) throw new Error(`environment ${name} has no splits`);
  if (!definition.taskTools && Object.keys(definition.tools ?? {}).length === 0) throw new Error(`environment ${name} has no tools`);
  return { ...definition, splits: definition.splits.map(toSplit) } as unknown as Environment;
}

export function textBlock(text: string, detail: JsonObject | null = null): OutputBlock {
  return { text, detail, type: 'text' };
}

/** `data` is base64 text or bytes. */
export function imageBlock(data: string | Uint8Array, mimeType: string, detail: JsonObject | null = null): OutputBlock {
  return { data: typeof data === 'string' ? data : Buffer.from(data).toString('base64'), mimeType, detail, type: 'image' };
}
