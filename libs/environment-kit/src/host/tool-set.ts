import type { JsonObject, TerminalTool, ToolSpec } from '@palestra/protocol';
import { z } from 'zod';
import type { Tool, Tools } from '../definition.ts';

/** A tool of any task and state type. */
export type AnyTool = Tool<never, never>;

/** The published JSON Schema of the arguments, without `$schema` and without the bounds of safe integers. */
function toInputSchema(name: string, { input, inputSchema }: AnyTool): JsonObject | null {
  if (inputSchema) return inputSchema;
  if (!input) return null;
  const { $schema: _, ...schema } = z.toJSONSchema(input, {
    io: 'input',
    override: ({ jsonSchema }) => {
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  if (schema.type !== 'object') throw new Error(`the arguments of tool ${name} must be an object`);
  return schema;
}

function toTerminalTool(name: string, tool: AnyTool): TerminalTool {
  const fields = Object.keys((toInputSchema(name, tool)?.properties as JsonObject | undefined) ?? {});
  if (fields.length > 1) throw new Error(`terminal tool ${name} must take at most one argument, not ${fields.join(', ')}`);
  return { name, arg: fields[0] ?? null, description: tool.description };
}

/** Tools by name, with their published specs. */
export class ToolSet {
  readonly specs: ToolSpec[] = [];
  readonly terminal: TerminalTool | null = null;
  readonly #tools = new Map<string, AnyTool>();

  /** `specs` keeps the order of `tools`. */
  constructor(tools: Tools<never, never>) {
    for (const [name, tool] of Object.entries(tools)) {
      this.#tools.set(name, tool);
      if (tool.terminal) {
        if (this.terminal) throw new Error(`two terminal tools: ${this.terminal.name} and ${name}`);
        if (tool.mode === 'concurrent') throw new Error(`terminal tool ${name} cannot be concurrent`);
        this.terminal = toTerminalTool(name, tool);
      } else if (!tool.unlisted) {
        this.specs.push({ name, description: tool.description, input_schema: toInputSchema(name, tool) });
      }
    }
  }

  get(name: string): AnyTool | undefined {
    return this.#tools.get(name);
  }
}

/** Sorts tools by name, like the reference server lists the tools of an environment. */
export function sortedByName(tools: Tools<never, never>): Tools<never, never> {
  return Object.fromEntries(Object.entries(tools).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
