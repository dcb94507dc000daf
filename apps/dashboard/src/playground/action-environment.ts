import {
  type ImageBlock,
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

/** The only tool of an action environment: its arguments are the action, its result is the observation as JSON. */
const ACTION_TOOL = 'step';

/** The tool of an action environment, as OpenEnv and Gymnasium have them; null for an environment with other tools. */
export function actionToolOf({ tools, terminal_tool: terminal }: ToolsAnswer): ToolSpec | null {
  const [only, ...others] = tools;
  return only?.name === ACTION_TOOL && others.length === 0 && !terminal ? only : null;
}

/** Large enough for the frame of a game as a list of numbers. */
const MAX_OBSERVATION_CHARACTERS = 6_000_000;

/** The observation in the blocks of a result: one text with a JSON object, and images. Otherwise null. */
export function observationIn(blocks: readonly MessageBlock[] | null | undefined): JsonObject | null {
  const [block, ...others] = blocks ?? [];
  if (block?.type !== 'text' || others.some(({ type }) => type !== 'image')) return null;
  const value = parseTree(block.text, MAX_OBSERVATION_CHARACTERS);
  return value === undefined || Array.isArray(value) ? null : (value as JsonObject);
}

/** The images beside an observation, in the order of the notes in it. */
export const imagesIn = (blocks: readonly MessageBlock[] | null | undefined): ImageBlock[] =>
  (blocks ?? []).filter((block) => block.type === 'image');

/** The image that the service put into the place of a member: its value is a note such as `image 1: 160 x 210, RGB`. */
export function notedImage(value: JsonValue, images: readonly ImageBlock[]): ImageBlock | null {
  const [, number] = (typeof value === 'string' && /^image (\d)(?:: |$)/.exec(value)) || [];
  return images[Number(number) - 1] ?? null;
}

/** An OpenEnv client opens a session without a task and chooses the task when it resets. */
export const resetsItself = ({ task }: Pick<SessionView, 'task'>): boolean => task?.['kind'] === 'none';
/** A reset of an OpenEnv client. The log lists it like a call, but it is no tool. */
export const isReset = (session: Pick<SessionView, 'task'>, { tool }: { tool: string }): boolean =>
  resetsItself(session) && tool === 'reset';

/** Legal actions that get a button. */
export const MAX_LEGAL = 120;
/** The legal actions that an observation lists; empty if it has no list. */
export function legalActions(observation: JsonObject | null): JsonValue[] {
  const legal = observation?.['legal_actions'];
  return Array.isArray(legal) ? legal : [];
}

/** Names of members that usually take the action. */
const ACTION_NAMES = /^(action|action_id|move|column|choice)$/;

/**
 * The draft of the form with a legal action filled in. An object is a whole action. Any other value goes into the member that it fits:
 * a required member, or one with a name of `ACTION_NAMES`. null if no member or more than one fits.
 */
export function withLegalAction(field: Field, draft: Draft, legal: JsonValue): Draft | null {
  const { shape } = field;
  if (isObject(legal)) {
    const filled = fill(field, legal);
    return readDraft(field, filled).problems.length === 0 ? filled : null;
  }
  if (shape.kind !== 'object' || draft.kind !== 'object') return null;
  const fitting = shape.members.map((member, index) => ({ ...member, index })).filter((member) => fits(member.field, legal));
  const requiredMembers = fitting.filter(({ required }) => required);
  const [first, ...others] = requiredMembers.length > 0 ? requiredMembers : fitting;
  if (first === undefined) return null;
  const chosen = others.length === 0 ? first : [first, ...others].find(({ name }) => ACTION_NAMES.test(name));
  if (chosen === undefined) return null;
  const members = draft.members.map((old, index) => (index === chosen.index ? fill(chosen.field, legal) : old));
  return { ...draft, members };
}

const MAX_LABEL = 40;
/** A short label of a legal action. */
export function legalLabel(legal: JsonValue): string {
  const text = typeof legal === 'string' ? legal : stringifyJson(legal);
  return text.length > MAX_LABEL ? `${text.slice(0, MAX_LABEL)}…` : text;
}
