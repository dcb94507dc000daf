import type { JsonObject, ToolSpec } from '@palestra/protocol';

/** Tools in the formats of model APIs. A tool without arguments gets an empty object schema. */

const schemaOf = ({ input_schema: schema }: ToolSpec): JsonObject => schema ?? { type: 'object', properties: {} };

export const openAiTool = (tool: ToolSpec): JsonObject => ({
  type: 'function',
  function: { name: tool.name, description: tool.description, parameters: schemaOf(tool) },
});

export const anthropicTool = (tool: ToolSpec): JsonObject => ({
  name: tool.name,
  description: tool.description,
  input_schema: schemaOf(tool),
});

export const toolText = (value: JsonObject | JsonObject[]): string => JSON.stringify(value, null, 2);
