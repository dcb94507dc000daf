import { isObject, type JsonObject, type JsonValue, toPlainNumber } from '@palestra/protocol';
import { invalid, type Issue, issue } from '../wire/errors.ts';
import { allowsOtherFields } from '../wire/schemas.ts';

/** The action of a `step` on an environment of tools. Throws `VALIDATION_ERROR`. */
export function readToolAction(action: JsonObject): 'list_tools' | { tool: string; input: JsonObject } {
  const { type, tool_name: tool, arguments: input, metadata } = action;
  let known = 0;
  for (const key in action) if (key === 'type' || key === 'tool_name' || key === 'arguments' || key === 'metadata') known += 1;
  const strange = Object.keys(action).length !== known;
  if (type === 'list_tools' && tool === undefined && input === undefined && !strange) return 'list_tools';
  const typed = type === undefined || type === 'call_tool';
  if (typed && typeof tool === 'string' && !strange && (metadata === undefined || isObject(metadata))) {
    if (input === undefined) return { tool, input: {} };
    if (isObject(input)) return { tool, input };
  }
  throw invalid(toolActionIssues(action));
}

function toolActionIssues(action: JsonObject): Issue[] {
  const issues: Issue[] = [];
  const listing = action['type'] === 'list_tools';
  const known = listing ? ['metadata', 'type'] : ['metadata', 'type', 'tool_name', 'arguments'];
  const { type, tool_name: tool, arguments: input, metadata } = action;
  if (metadata !== undefined && !isObject(metadata)) issues.push(issue('dict_type', ['metadata'], metadata));
  if (!listing) {
    if (type !== undefined && type !== 'call_tool') issues.push(issue('literal_error', ['type'], type, "Input should be 'call_tool'"));
    if (tool === undefined) issues.push(issue('missing', ['tool_name'], action));
    else if (typeof tool !== 'string') issues.push(issue('string_type', ['tool_name'], tool));
    if (input !== undefined && !isObject(input)) issues.push(issue('dict_type', ['arguments'], input));
  }
  for (const key of Object.keys(action)) if (!known.includes(key)) issues.push(issue('extra_forbidden', [key], action[key]));
  return issues;
}

/** What is plainly wrong with an action of a published schema: missing, unknown and mistyped fields. The rest is the environment's to judge. */
export function invalidActions(schema: JsonObject, action: JsonObject): Issue[] {
  const properties = (schema['properties'] ?? {}) as Record<string, JsonObject>;
  const required = (schema['required'] ?? []) as string[];
  const issues: Issue[] = [];
  for (const [name, property] of Object.entries(properties)) {
    const value = action[name];
    if (value === undefined) {
      if (required.includes(name) && property['default'] === undefined) issues.push(issue('missing', [name], action));
      continue;
    }
    const wrong = mistyped(property['type'], value);
    if (wrong !== null) issues.push(issue(wrong, [name], value));
  }
  if (allowsOtherFields(schema)) return issues;
  for (const key of Object.keys(action)) if (!Object.hasOwn(properties, key)) issues.push(issue('extra_forbidden', [key], action[key]));
  return issues;
}

/** pydantic's name for a value of another type; texts and booleans that it would read as numbers are left to the environment. */
function mistyped(type: JsonValue, value: JsonValue): string | null {
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
