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

type Awaitable<T> = T | Promise<T>;

/** One episode, as every callback of an environment sees it. */
export interface Session<Task, State> {
  readonly sid: string;
  readonly task: Task;
  /** Decoded secrets of the client: name -> value. Empty when it sent none. */
  readonly secrets: Readonly<Record<string, string>>;
  /** What `create` returned; free to be changed or replaced. */
  state: State;
  /** Aborts when the session is deleted or expires: stop waiting and let go. */
  readonly signal: AbortSignal;
}

export interface ToolResult {
  /** Blocks, one block, or a text. Left out: no blocks. */
  content?: string | OutputBlock | OutputBlock[];
  /** Reward of this call; null (never 0) when the call is not scored. */
  reward?: number | null;
  /** Ends the episode: every later call is refused with `episode_finished`. */
  finished?: boolean;
  metadata?: JsonObject | null;
}
/** What a tool may return: a text alone is a result without reward. */
export type ToolReturn = string | OutputBlock | OutputBlock[] | ToolResult;

export interface Tool<Task, State> {
  /** Tells the model when and how to use it; some harnesses refuse an empty one. */
  description: string;
  /** Validates the arguments; its JSON Schema, of type object, is published. Absent: the tool takes no arguments. */
  input?: z.ZodType;
  /** Published instead of the schema derived from `input`. */
  inputSchema?: JsonObject;
  /**
   * How calls of this tool in one session may overlap: `serial` (default) one after another, other tools beside it;
   * `concurrent` freely, for tools that never give reward; `exclusive` waits for every running call and holds back new ones.
   */
  mode?: 'serial' | 'concurrent' | 'exclusive';
  /** May run again when nobody can know whether it ran: it only looks, or a second run changes nothing. */
  idempotent?: boolean;
  /** Callable, but not listed. */
  unlisted?: boolean;
  /**
   * The harness ends the episode by passing the model's last message to this tool: it is not listed, takes at most one
   * argument and is always exclusive. At most one tool of an environment.
   */
  terminal?: boolean;
  /** Throwing means that the tool itself crashed; a mistake of the model is a normal result. */
  run(input: never, session: Session<Task, State>): Awaitable<ToolReturn>;
}

interface ToolOptions<Input extends z.ZodType, Task, State> extends Omit<Tool<Task, State>, 'run' | 'input'> {
  input?: Input;
  run(input: z.output<Input>, session: Session<Task, State>): Awaitable<ToolReturn>;
}

/** A tool whose `run` gets its arguments typed by its schema. */
export function tool<Input extends z.ZodType, Task, State>(options: ToolOptions<Input, Task, State>): Tool<Task, State> {
  return options as unknown as Tool<Task, State>;
}

export type Tools<Task, State> = Record<string, Tool<Task, State>>;

interface DefinitionBase<Task, State> {
  /** Matched without regard to case. */
  name: string;
  description?: string;
  /** Markdown card. */
  readme?: string;
  /** A bare name other than train, validation, test is of type validation. */
  splits: (string | Split)[];
  /** Same task, same calls, same results. Lets Palestra replay an episode. */
  deterministic?: boolean;
  /** Cheap, before anything is answered: its error is the answer of `/create`. */
  create?(session: Session<Task, undefined>): Awaitable<State>;
  /** Slow work in the background; prompt and calls wait for it, and its error is the answer of each of them. */
  setup?(session: Session<Task, State>): Awaitable<void>;
  /** Runs once when the session ends in any way; its errors are only logged. */
  teardown?(session: Session<Task, State>): Awaitable<void>;
  tools?: Tools<Task, State>;
  /** More tools, listed and callable for this task only, in this order; asked once, perhaps before `setup` has ended. */
  taskTools?(session: Session<Task, State>): Awaitable<Tools<Task, State>>;
  /**
   * Bundles of tools that a client may choose one of, by name, for its session: the tools of its agent harness. They take the place of
   * tools of the same names and are listed last. Made after `create`; throwing is a 400 of `/create` (a task that has no sandbox, say).
   */
  toolsets?: Record<string, (session: Session<Task, State>) => Awaitable<Tools<Task, State>>>;
  /** One score per candidate, in order; throw when the judge fails. */
  scoreGroup?(candidates: GroupCandidate[], session: Session<Task, State>): Awaitable<(number | GroupScore)[]>;
}

/** Every task of a split; kept after the first question. */
interface ListedTasks<Task> {
  tasks(split: string): Awaitable<readonly Task[]>;
  numTasks?: undefined;
  task?: undefined;
}
/** Tasks made on demand. `task` throws a RangeError for an index that there is not. */
interface IndexedTasks<Task> {
  tasks?: undefined;
  numTasks(split: string): Awaitable<number>;
  task(split: string, index: number): Awaitable<Task>;
}

/** Exactly one of a prompt and a conversation; clients may ask for either form of it. */
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

/** A checked definition whose task and state types are its own business. */
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
 * An environment, ready to be served. Throws on what would fail every session: no split, no tool, two terminal tools, a
 * terminal tool with several arguments, a tool schema that is not an object.
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

/** `data` is base64 text, or bytes that are encoded here. */
export function imageBlock(data: string | Uint8Array, mimeType: string, detail: JsonObject | null = null): OutputBlock {
  return { data: typeof data === 'string' ? data : Buffer.from(data).toString('base64'), mimeType, detail, type: 'image' };
}
