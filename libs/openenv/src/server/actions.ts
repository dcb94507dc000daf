import { isObject, type JsonObject, type JsonValue, toPlainNumber } from '@palestra/protocol';
import { invalid, type Issue, issue } from '../wire/errors.ts';
import { allowsOtherFields } from '../wire/schemas.ts';

/** Parses the action of a `step` in an environment of tools. Throws `VALIDATION_ERROR`. */
export function readToolAction(action: JsonObject): 'list_tools' | { tool: string; input: JsonObject } {
  const { type, tool_name: tool, arguments: input, metadata } = action;
  let knownKeys = 0;
  for (const key in action) if (key === 'type' || key === 'tool_name' || key === 'arguments' || key === 'metadata') knownKeys += 1;
  const hasUnknownKeys = Object.keys(action).length !== knownKeys;
  if (type === 'list_tools' && tool === undefined && input === undefined && !hasUnknownKeys) return 'list_tools';
  const isCallTool = type === undefined || type === 'call_tool';
  if (isCallTool && typeof tool === 'string' && !hasUnknownKeys && (metadata === undefined || isObject(metadata))) {
    if (input === undefined) return { tool, input: {} };
    if (isObject(input)) return { tool, input };
  }
  throw invalid(toolActionIssues(action));
}

function toolActionIssues(action: JsonObject): Issue[] {
  const issues: Issue[] = [];
  const isListTools = action['type'] === 'list_tools';
  const known = isListTools ? ['metadata', 'type'] : ['metadata', 'type', 'tool_name', 'arguments'];
  const { type, tool_name: tool, arguments: input, metadata } = action;
  if (metadata !== undefined && !isObject(metadata)) issues.push(issue('dict_type', ['metadata'], metadata));
  if (!isListTools) {
    if (type !== undefined && type !== 'call_tool') issues.push(issue('literal_error', ['type'], type, "Input should be 'call_tool'"));
    if (tool === undefined) issues.push(issue('missing', ['tool_name'], action));
    else if (typeof tool !== 'string') issues.push(issue('string_type', ['tool_name'], tool));
    if (input !== undefined && !isObject(input)) issues.push(issue('dict_type', ['arguments'], input));
  }
  for (const key of Object.keys(action)) if (!known.includes(key)) issues.push(issue('extra_forbidden', [key], action[key]));
  return issues;
}

/** Returns missing, unknown and mistyped fields of an action with a published schema. The environment checks everything else. */
export function actionIssues(schema: JsonObject, action: JsonObject): Issue[] {
  const properties = (schema['properties'] ?? {}) as Record<string, JsonObject>;
  const required = (schema['required'] ?? []) as string[];
  const issues: Issue[] = [];
  for (const [name, property] of Object.entries(properties)) {
    const value = action[name];
    if (value === undefined) {
      if (required.includes(name) && property['default'] === undefined) issues.push(issue('missing', [name], action));
      continue;
    }
    const wrong = typeErrorOf(property['type'], value);
    if (wrong !== null) issues.push(issue(wrong, [name], value));
  }
  if (allowsOtherFields(schema)) return issues;
  for (const key of Object.keys(action)) if (!Object.hasOwn(properties, key)) issues.push(issue('extra_forbidden', [key], action[key]));
  return issues;
}

/** Returns pydantic's error type, or null. Strings and booleans that pydantic would read as numbers pass. */
function typeErrorOf(type: JsonValue, value: JsonValue): string | null {
  const number = toPlainNumber(value);
  switch (type) {
    case 'string':
      return typeof value === 'string' ? null : 'string_type';
    case 'boolean':
      return typeof value === 'boolean' || number !== null || typeof value === 'string' ? null : 'bool_type';
    case 'integer':
      if (typeof value === 'string') return /^\s*[-+]?\d+\s*$/.test(value) ? null : 'int_parsing';
      if (number === null) return typeof value === 'boolean' ? null : 'int_type';
      return Number.isInteger(number) ? null : 'int_from_float';
    case 'number':
      if (typeof value === 'string') return value.trim() !== '' && Number.isFinite(Number(value)) ? null : 'float_parsing';
      return number !== null || typeof value === 'boolean' ? null : 'float_type';
    case 'array':
      return Array.isArray(value) ? null : 'list_type';
    case 'object':
      return isObject(value) ? null : 'dict_type';
    default:
      return null;
  }
}
