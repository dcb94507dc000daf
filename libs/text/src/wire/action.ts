import { isObject, type JsonObject, type JsonValue, parseJson, stringifyJson, type ToolSpec } from '@palestra/protocol';
import { pythonListToJson } from './python-literal.ts';
import { pythonFloat, pythonInt, pythonRepr, pythonStr } from '@palestra/kit/python';

/** The tool of a model's actions. */
export interface ActionTool {
  name: string;
  schema: JsonObject;
  /** Its result is the JSON text of an observation, as in action environments. */
  observes: boolean;
}

/** The tool of an action environment, or the only tool if it takes one argument; null otherwise. */
export function actionToolOf(tools: ToolSpec[]): ActionTool | null {
  const [tool] = tools;
  if (tool === undefined || tools.length !== 1) return null;
  const { name, input_schema: schema } = tool;
  const observes = name === ACTION_TOOL;
  if (!observes && fieldOf(schema ?? {}) === null) return null;
  return { name, schema: schema ?? {}, observes };
}

/** The only tool of an action environment; OpenEnv reserves the name. */
const ACTION_TOOL = 'step';

/**
 * The content of the last `<action>...</action>` on one line. Throws with the text of SkyRL's OpenEnv adapter if there is none or it is
 * empty.
 */
export function findAction(text: string): string {
  const action = [...text.matchAll(/<action>([^\n]*?)<\/action>/g)].at(-1)?.[1];
  if (!action) throw new Error(`No action found in action string: ${action ?? 'None'}`);
  return action;
}

/** Converts a text to an action. Throws an Error whose text the model sees. */
export function toAction({ schema }: ActionTool, text: string): JsonObject {
  const field = fieldOf(schema);
  const object = objectOf(text);
  if (object !== null && (field === null || isActionOf(schema, field, object))) return object;
  if (field === null) throw new Error(`Action must be a JSON object, got: ${text}`);
  return parseJson(`{${JSON.stringify(field)}:${fieldText(schema, field, text)}}`) as JsonObject;
}

function objectOf(text: string): JsonObject | null {
  try {
    const value = parseJson(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

const propertiesOf = (schema: JsonObject): JsonObject => (isObject(schema['properties']) ? schema['properties'] : {});

/** The only required field, or the only field; null if there are several. */
function fieldOf(schema: JsonObject): string | null {
  const required = Array.isArray(schema['required']) ? (schema['required'] as string[]) : [];
  const names = required.length > 0 ? required : Object.keys(propertiesOf(schema));
  return names.length === 1 ? names[0]! : null;
}

/** Whether an object is the action itself, and not the value of its text field. */
function isActionOf(schema: JsonObject, field: string, object: JsonObject): boolean {
  const known = propertiesOf(schema);
  return Object.hasOwn(object, field) && Object.keys(object).every((name) => Object.hasOwn(known, name));
}

function typeOf(schema: JsonValue): string {
  if (!isObject(schema)) return 'string';
  const { type, anyOf } = schema;
  const types = Array.isArray(type) ? (type as string[]) : Array.isArray(anyOf) ? anyOf.map(typeOf) : [type];
  const first = types.find((name) => name !== 'null');
  return typeof first === 'string' ? first : 'string';
}

/** JSON text of the field's value, converted as in the adapter (docs/reference/skyrl.md#action-conversion). */
function fieldText(schema: JsonObject, field: string, text: string): string {
  // OpenEnv titles schemas by class: AtariAction, FinRLAction.
  const environment = /^(\w+)Action$/.exec(String(schema['title'] ?? ''))?.[1] ?? null;
  switch (typeOf(propertiesOf(schema)[field])) {
    case 'integer':
      if (environment === 'Atari' && !/^\d+$/.test(text)) throw new Error(`Atari action must be numeric, got: ${text}`);
      return pythonInt(text);
    case 'number':
      return pythonFloat(text);
    case 'boolean':
      if (/^true$|^1$/i.test(text.trim())) return 'true';
      if (/^false$|^0$/i.test(text.trim())) return 'false';
      throw new Error(`Action must be true or false, got: ${text}`);
    case 'array':
      return listText(environment, text);
    case 'object':
      throw new Error(`Action must be a JSON object, got: ${text}`);
    default:
      return JSON.stringify(text);
  }
}

function listText(environment: string | null, text: string): string {
  try {
    return pythonListToJson(text);
  } catch (error) {
    // The adapter checks for a list outside its `try`.
    if (error instanceof TypeError) throw error;
    const kind = environment === null ? '' : `${environment} `;
    throw new Error(`Invalid ${kind}action format '${text}', needs to be a list of floats: ${(error as Error).message}`, { cause: error });
  }
}

const SHOWN_ITEMS = 20;

/** The adapter's text of an observation: one line per field, long lists cut. */
export function renderObservation(observation: JsonObject): string {
  const lines = Object.entries(observation).map(([key, value]) => {
    if (!Array.isArray(value)) return `${key}: ${pythonStr(value)}`;
    const more = value.length > SHOWN_ITEMS ? ' ...' : '';
    return `${key}: ${pythonRepr(value.slice(0, SHOWN_ITEMS))}${more} (len=${value.length})`;
  });
  return `${lines.join('\n')}\n given this information, try again.`;
}

/** The adapter's text of a tool result. `done`, `reward` and `metadata` come first, as in OpenEnv's classes. */
export function renderResult(text: string, of: { done: boolean; reward: JsonValue; metadata: JsonValue }): string {
  const fields = objectOf(text);
  return fields === null ? `Observation: ${text}` : renderObservation({ ...of, metadata: of.metadata ?? {}, ...fields });
}

/** The stored form. */
export const writeActionTool = (tool: ActionTool | null): string | null => (tool === null ? null : stringifyJson(tool));
export const readActionTool = (text: string | null): ActionTool | null =>
  text === null ? null : (parseJson(text) as unknown as ActionTool);
