import { type JsonObject, type JsonValue, parseJson, type RunToolOutput, type TextParse } from '@palestra/protocol';
import { type CallOutcome, classifyOutcome, errorOfOutcome } from '@palestra/session';
import { type ActionTool, findAction, renderResult, toAction } from '../wire/action.ts';
import { isFalsy } from '@palestra/kit/python';
import { parseToolCall, toolResponse } from '../wire/tool-call.ts';

/** Pure functions of one turn: what the model's text requests, and what the trainer gets for the outcome of its call. */

export interface TextConfig {
  parse: TextParse;
  maxTurns: number;
  /** The client's name of the environment. */
  environment: string;
  /** Set if `parse` is `action`. */
  action: ActionTool | null;
}

/** `BaseTextEnvStepOutput` of SkyRL-Gym (docs/reference/skyrl.md#basetextenv). */
export interface TextStep {
  observations: { role: 'user'; content: string }[];
  /** A float keeps its point (`0.0`), as in Python's own environments. */
  reward: JsonValue;
  done: boolean;
  metadata: JsonObject;
}

export interface PlayedTurn {
  step: TextStep;
  /** Its reward counts for `num_rewards`: an action was taken or failed. */
  counted: boolean;
}

export type ReadTurn = { type: 'played'; played: PlayedTurn } | { type: 'call'; tool: string; input: JsonObject };

const NO_REWARD: JsonValue = parseJson('0.0');
/** The reward of a failed action in SkyRL's OpenEnv adapter. */
const FAILED_ACTION = -1;

/** `turn` counts from 1. */
export function readTurn(config: TextConfig, turn: number, text: string): ReadTurn {
  return config.parse === 'action' ? readAction(config, turn, text) : readToolCall(config, turn, text);
}

/** The turn for the outcome of its call. Throws the error of an outcome that must not become a reward. */
export function playedTurn(config: TextConfig, turn: number, call: { tool: string; input: JsonObject }, outcome: CallOutcome): PlayedTurn {
  // A refusal of the environment's server for an error of the policy is shown to the policy.
  if (outcome.type === 'refused' && !OF_POLICY.has(outcome.code)) throw errorOfOutcome(outcome);
  return config.parse === 'action' ? afterAction(config, turn, call, outcome) : afterToolCall(config, turn, call, outcome);
}

const OF_POLICY: ReadonlySet<string> = new Set(['invalid_body', 'invalid_request', 'invalid_json']);

function readToolCall(config: TextConfig, turn: number, text: string): ReadTurn {
  const parsed = parseToolCall(text);
  const metadata = (of: JsonObject, content: string | null, done: boolean): ReadTurn => ({
    type: 'played',
    played: {
      step: { observations: content === null ? [] : say(toolResponse(content)), reward: NO_REWARD, done, metadata: of },
      counted: false,
    },
  });
  if (parsed === null) return metadata({ stop_reason: 'no_tool_call' }, null, true);
  if (parsed.type === 'malformed') {
    return metadata({ tool_call_error: parsed.error }, `Error parsing tool call: ${parsed.error}`, turn >= config.maxTurns);
  }
  if (parsed.type === 'call') return { type: 'call', tool: parsed.name, input: parsed.arguments };
  const call = { tool: parsed.name, input: parsed.arguments };
  return { type: 'played', played: toolCallTurn(config, turn, call, { text: `Error: ${parsed.error}` }) };
}

function afterToolCall(config: TextConfig, turn: number, call: { tool: string; input: JsonObject }, outcome: CallOutcome): PlayedTurn {
  const result = resultOf(outcome);
  if (!result.ok) return toolCallTurn(config, turn, call, { text: `Error: ${result.sdkText}`, failureClass: result.failureClass });
  return toolCallTurn(config, turn, call, result);
}

function toolCallTurn(
  config: TextConfig,
  turn: number,
  { tool, input }: { tool: JsonValue; input: JsonObject },
  result: { text: string; reward?: JsonValue; finished?: boolean; failureClass?: string | undefined },
): PlayedTurn {
  const { text, reward = null, finished = false, failureClass } = result;
  const metadata = { tool_name: tool, tool_args: input, finished, ...(failureClass !== undefined && { failure_class: failureClass }) };
  const done = finished || turn >= config.maxTurns;
  return { step: { observations: say(toolResponse(text)), reward: reward ?? NO_REWARD, done, metadata }, counted: true };
}

function readAction(config: TextConfig, turn: number, text: string): ReadTurn {
  try {
    const tool = config.action!;
    return { type: 'call', tool: tool.name, input: toAction(tool, findAction(text)) };
  } catch (error) {
    return { type: 'played', played: actionTurn(config, turn, text, { error: (error as Error).message }) };
  }
}

function afterAction(config: TextConfig, turn: number, { input }: { input: JsonObject }, outcome: CallOutcome): PlayedTurn {
  const result = resultOf(outcome);
  if (!result.ok) return actionTurn(config, turn, input, { error: result.text, failureClass: result.failureClass });
  const { finished: done, reward, metadata } = result;
  return actionTurn(config, turn, input, { observation: renderResult(result.text, { done, reward, metadata }), reward, done });
}

/** The last turn has no observation, only its reward. */
function actionTurn(
  config: TextConfig,
  turn: number,
  action: JsonValue,
  { observation, error, reward, done = false, failureClass }: ActionResult,
): PlayedTurn {
  const last = turn >= config.maxTurns;
  const content = observation ?? error ?? '';
  const earned = error === undefined ? (isFalsy(reward) ? NO_REWARD : reward) : FAILED_ACTION;
  const failed = failureClass === undefined ? {} : { failure_class: failureClass };
  const seen = { env_class: config.environment, action, observation: observation ?? null };
  const metadata = last ? failed : { ...seen, ...failed };
  return {
    step: { observations: last || content === '' ? [] : say(content), reward: earned, done: last || done, metadata },
    counted: true,
  };
}

interface ActionResult {
  observation?: string;
  /** Instead of an observation. */
  error?: string;
  reward?: JsonValue;
  done?: boolean;
  failureClass?: string | undefined;
}

type Result =
  | { ok: true; text: string; reward: JsonValue; finished: boolean; metadata: JsonValue }
  /** `sdkText`: the text of the openreward SDK's exception. */
  | { ok: false; text: string; sdkText: string; failureClass: string | undefined };

function resultOf(outcome: CallOutcome): Result {
  if (outcome.type === 'refused') return failed(outcome.detail, outcome.detail);
  // SkyRL's adapters give a reward when a tool raises; `failure_class` lets the trainer mask it.
  if (outcome.type === 'tool_failed') return { ...failed(outcome.message, outcome.message), failureClass: classifyOutcome(outcome) };
  const answer = parseJson(outcome.text) as RunToolOutput;
  if (!answer.ok) return failed(answer.error, `${sdkReason(answer)}: ${answer.error}`);
  const { blocks, reward, finished, metadata } = answer.output;
  const text = blocks.map((block) => (block.type === 'text' ? block.text : '')).join('');
  return { ok: true, text, reward, finished, metadata };
}

const failed = (text: string, sdkText: string): Result & { ok: false } => ({ ok: false, text, sdkText, failureClass: undefined });

const SDK_REASONS = ['not_found', 'name_collision', 'input_validation', 'bad_input_shape', 'episode_finished'];

/** The SDK knows only these reasons and guesses those of older servers (docs/reference/ors.md#error-reasons). */
function sdkReason({ error, reason }: RunToolOutput & { ok: false }): string {
  if (reason !== undefined && SDK_REASONS.includes(reason)) return reason;
  if (error.startsWith('Tool name collision')) return 'name_collision';
  return error.startsWith('Tool input validation error') ? 'input_validation' : 'not_found';
}

const say = (content: string): TextStep['observations'] => [{ role: 'user', content }];
