import type { JsonObject, JsonValue } from './json.ts';
import type { SplitType } from './vocabularies.ts';

/** Objects of the Open Reward Standard (docs/reference/ors.md#objects). */

export interface ToolSpec {
  name: string;
  description: string;
  /** Plain JSON Schema, or null for a tool without arguments. */
  input_schema: JsonObject | null;
}

export interface TerminalTool {
  name: string;
  arg: string | null;
  description: string;
}

/** Answer of `/tools` and `/task_tools`. Keys that an older upstream does not send stay absent. */
export interface ToolsAnswer {
  tools: ToolSpec[];
  terminal_tool?: TerminalTool | null;
  supports_score_group?: boolean;
  message_block_types?: string[];
}

export interface Split {
  name: string;
  type: SplitType;
}

export interface TextBlock {
  text: string;
  detail: JsonObject | null;
  type: 'text';
}
export interface ImageBlock {
  /** base64 */
  data: string;
  mimeType: string;
  detail: JsonObject | null;
  type: 'image';
}
export interface ReasoningBlock {
  text: string;
  signature: string | null;
  detail: JsonObject | null;
  type: 'reasoning';
}
export interface ToolCallBlock {
  id: string;
  name: string;
  input: JsonObject;
  detail: JsonObject | null;
  type: 'tool_call';
}
export interface ToolResultBlock {
  tool_call_id: string;
  blocks: (TextBlock | ImageBlock)[];
  is_error: boolean;
  detail: JsonObject | null;
  type: 'tool_result';
}
export type OutputBlock = TextBlock | ImageBlock;
export type MessageBlock = OutputBlock | ReasoningBlock | ToolCallBlock | ToolResultBlock;
export interface Message {
  role: 'system' | 'user' | 'assistant';
  blocks: MessageBlock[];
  detail: JsonObject | null;
}

export interface ToolOutput {
  blocks: OutputBlock[];
  metadata: JsonObject | null;
  reward: number | null;
  finished: boolean;
}

/** Known reasons. Unknown reasons of an upstream are kept (docs/reference/ors.md#error-reasons). */
export type ToolErrorReason = 'not_found' | 'name_collision' | 'input_validation' | 'episode_finished' | (string & {});

export type RunToolOutput = { ok: true; output: ToolOutput } | { ok: false; error: string; reason?: ToolErrorReason };

export interface GroupScore {
  reward: number;
  metadata: JsonObject | null;
}
export interface GroupCandidate {
  messages: Message[];
  metadata?: JsonObject | null;
}

export type TaskSpec = JsonValue;

/** Body of `POST /create`: exactly one of task_spec, or split with index. No other keys. */
export interface CreateBody {
  task_spec?: TaskSpec;
  split?: string;
  index?: number;
  env_name?: string | null;
  toolset_name?: string | null;
}

/** Body of `POST /{env}/call`. No other keys. */
export interface CallBody {
  name: string;
  input: JsonObject;
  task_id?: string | null;
}
