import {
  type JsonObject,
  type JsonValue,
  type MessageBlock,
  type SessionView,
  stringifyJson,
  type ToolSpec,
  type ToolsAnswer,
} from '@palestra/protocol';
import { parseTree } from '../text/json.ts';
import { type Draft, fill, fits } from './form/draft.ts';
import { type Field, isObject } from './form/field.ts';
import { readDraft } from './form/read.ts';

/** The tool that an action environment consists of: its arguments are the action, its result is the JSON of the observation. */
const ACTION_TOOL = 'step';

/** The one tool of an environment that takes actions (as OpenEnv's and Gymnasium's do); null for one that offers tools. */
export function actionToolOf({ tools, terminal_tool: terminal }: ToolsAnswer): ToolSpec | null {
  const [only, ...others] = tools;
  return only?.name === ACTION_TOOL && others.length === 0 && !terminal ? only : null;
}

/** A frame of a game as numbers, say. */
const MAX_OBSERVATION_CHARACTERS = 6_000_000;

/** The observation that blocks say: one text that is the JSON of an object. */
export function observationIn(blocks: readonly MessageBlock[] | null | undefined): JsonObject | null {
  const [block, ...others] = blocks ?? [];
  if (block?.type !== 'text' || others.length > 0) return null;
  const value = parseTree(block.text, MAX_OBSERVATION_CHARACTERS);
  return value === undefined || Array.isArray(value) ? null : (value as JsonObject);
}

/** An OpenEnv client of an OpenEnv server opens its session without a task: it says one when it resets. */
export const resetsItself = ({ task }: Pick<SessionView, 'task'>): boolean => task?.['kind'] === 'none';
/** A reset by such a client: in the log like a call, but no tool. */
export const isReset = (session: Pick<SessionView, 'task'>, { tool }: { tool: string }): boolean =>
  resetsItself(session) && tool === 'reset';

/** Offered as buttons; more are counted. */
export const MAX_LEGAL = 120;
/** What an observation says may be done next; none said: an empty list. */
export function legalActions(observation: JsonObject | null): JsonValue[] {
  const legal = observation?.['legal_actions'];
  return Array.isArray(legal) ? legal : [];
}

const LIKELY = /^(action|action_id|move|column|choice)$/;

/**
 * The action that a legal one of an observation stands for, as the form filled in with it. An object is the action, over what is filled
 * in; anything else goes into the member that takes it: the one that must be given, or that has a name of such members. null: no
 * member is the only one.
 */
export function withLegal(field: Field, draft: Draft, legal: JsonValue): Draft | null {
  const { shape } = field;
  if (isObject(legal)) {
    const filled = fill(field, legal);
    return readDraft(field, filled).problems.length === 0 ? filled : null;
  }
  if (shape.kind !== 'object' || draft.kind !== 'object') return null;
  const taking = shape.members.map((member, index) => ({ ...member, index })).filter((member) => fits(member.field, legal));
  const needed = taking.filter(({ required }) => required);
  const [first, ...others] = needed.length > 0 ? needed : taking;
  if (first === undefined) return null;
  const chosen = others.length === 0 ? first : [first, ...others].find(({ name }) => LIKELY.test(name));
  if (chosen === undefined) return null;
  const members = draft.members.map((old, index) => (index === chosen.index ? fill(chosen.field, legal) : old));
  return { ...draft, members };
}

const MAX_LABEL = 40;
/** A legal action in a few characters. */
export function legalLabel(legal: JsonValue): string {
  const text = typeof legal === 'string' ? legal : stringifyJson(legal);
  return text.length > MAX_LABEL ? `${text.slice(0, MAX_LABEL)}…` : text;
}
