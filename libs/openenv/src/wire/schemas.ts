import type { JsonObject } from '@palestra/protocol';

/** JSON Schemas of OpenEnv's own classes. Clients recognise tool environments by the titles (docs/reference/openenv.md#http-routes). */

const METADATA = (what: string): JsonObject => ({
  additionalProperties: true,
  description: `Additional metadata for the ${what}`,
  title: 'Metadata',
  type: 'object',
});

const OBSERVED: JsonObject = {
  done: { default: false, description: 'Whether the episode has terminated', title: 'Done', type: 'boolean' },
  reward: {
    anyOf: [{ type: 'boolean' }, { type: 'integer' }, { type: 'number' }, { type: 'null' }],
    default: null,
    description: 'Reward signal from the last action',
    title: 'Reward',
  },
  metadata: METADATA('observation'),
};

const nullable = (type: string, title: string, description: string): JsonObject => ({
  anyOf: [{ type }, { type: 'null' }],
  default: null,
  description,
  title,
});

const STATE: JsonObject = {
  additionalProperties: true,
  description: 'Where the episode stands.',
  properties: {
    episode_id: nullable('string', 'Episode Id', 'Unique identifier for the current episode'),
    step_count: {
      default: 0,
      description: 'Number of steps taken in the current episode',
      minimum: 0,
      title: 'Step Count',
      type: 'integer',
    },
    split: nullable('string', 'Split', 'Split of the task; null for a task that the client sent'),
    index: nullable('integer', 'Index', 'Index of the task in its split'),
    session_id: nullable('string', 'Session Id', 'The session that the episode runs in'),
  },
  title: 'State',
  type: 'object',
};

const CALL_TOOL_ACTION: JsonObject = {
  additionalProperties: false,
  description: 'Call a tool by its name.',
  properties: {
    metadata: METADATA('action'),
    type: { const: 'call_tool', default: 'call_tool', description: 'Action type discriminator', title: 'Type', type: 'string' },
    tool_name: { description: 'Name of the tool to call', title: 'Tool Name', type: 'string' },
    arguments: { additionalProperties: true, description: 'Arguments to pass to the tool', title: 'Arguments', type: 'object' },
  },
  required: ['tool_name'],
  title: 'CallToolAction',
  type: 'object',
};

const CALL_TOOL_OBSERVATION: JsonObject = {
  $defs: {
    ToolError: {
      additionalProperties: false,
      description: 'Why a call of a tool failed.',
      properties: {
        error_type: { $ref: '#/$defs/ToolErrorType', description: 'Category of the error' },
        message: { description: 'Human-readable error message', title: 'Message', type: 'string' },
      },
      required: ['error_type', 'message'],
      title: 'ToolError',
      type: 'object',
    },
    ToolErrorType: {
      enum: ['execution_error', 'invalid_args', 'transport_error', 'tool_not_found', 'timeout'],
      title: 'ToolErrorType',
      type: 'string',
    },
  },
  additionalProperties: false,
  description: 'Result of a call of a tool.',
  properties: {
    ...OBSERVED,
    tool_name: { description: 'Name of the tool that was called', title: 'Tool Name', type: 'string' },
    result: { default: null, description: 'What the tool answered', title: 'Result' },
    error: {
      anyOf: [{ $ref: '#/$defs/ToolError' }, { type: 'null' }],
      default: null,
      description: 'Why the call failed',
    },
  },
  required: ['tool_name'],
  title: 'CallToolObservation',
  type: 'object',
};

const TASK_OBSERVATION: JsonObject = {
  additionalProperties: true,
  description: 'The task of an episode and the tools to solve it with.',
  properties: {
    ...OBSERVED,
    prompt: { description: 'The task in words', title: 'Prompt', type: 'string' },
    messages: { description: 'The task as a conversation, where it is more than its words', title: 'Messages', type: 'array' },
    tools: { description: 'Tools with name, description and input_schema', title: 'Tools', type: 'array' },
  },
  required: ['prompt', 'tools'],
  title: 'TaskObservation',
  type: 'object',
};

/** `GET /schema` of an environment of named tools. */
export const toolSchema: JsonObject = {
  action: CALL_TOOL_ACTION,
  observation: CALL_TOOL_OBSERVATION,
  state: STATE,
  reset_observation: TASK_OBSERVATION,
};

/**
 * Whether an action may have fields that `properties` does not list: the schema allows them, or lists them in `$ref`, `anyOf` and the like,
 * as union classes do.
 */
export const allowsOtherFields = ({ additionalProperties: others, ...schema }: JsonObject): boolean =>
  others !== false && ((others !== undefined && others !== null) || ['$ref', 'anyOf', 'oneOf', 'allOf'].some((key) => key in schema));

/** `GET /schema` of an action environment. `action`: the input schema of its tool `step`. */
export function actionSchema(className: string, action: JsonObject): JsonObject {
  const observation = {
    additionalProperties: true,
    properties: OBSERVED,
    title: `${className}Observation`,
    type: 'object',
  };
  const { properties } = action;
  return {
    action: {
      title: `${className}Action`,
      ...action,
      additionalProperties: allowsOtherFields(action) ? (action['additionalProperties'] ?? true) : false,
      type: 'object',
      properties: { metadata: METADATA('action'), ...(properties as JsonObject | undefined) },
    },
    observation,
    state: STATE,
    reset_observation: observation,
  };
}

/** A class name: `my_env-2` is `MyEnv2`. */
export const classNameOf = (name: string): string =>
  name
    .split(/[^a-zA-Z0-9]+/)
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('') || 'Environment';
