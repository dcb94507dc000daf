import type { MessageBlock, ToolSpec } from '@palestra/protocol';
import { pythonJson } from './python-json.ts';

/** SkyRL's system prompt for tool-calling environments, byte for byte (docs/reference/skyrl.md#task-export). */
const [BEFORE_TOOLS, AFTER_TOOLS] = [
  'You are an agent that takes actions in a stateful environment to achieve a goal.\n\n' +
    '# Tools\n\n' +
    'You may call one or more functions to assist with the user query.\n\n' +
    'You are provided with function signatures within <tools></tools> XML tags:\n' +
    '<tools>\n',
  '\n</tools>\n\n' +
    'For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n' +
    '<tool_call>\n' +
    '{"name": <function-name>, "arguments": <args-json-object>}\n' +
    '</tool_call>',
];

export interface ChatMessage {
  role: 'system' | 'user';
  content: string;
}

export function systemPrompt(tools: ToolSpec[]): string {
  const lines = tools.map(({ name, input_schema, description }) => pythonJson({ name, arguments_schema: input_schema, description }));
  return BEFORE_TOOLS + lines.join('\n') + AFTER_TOOLS;
}

/** The initial messages: the tools, then the text blocks of the task without a separator. Images are dropped. */
export function taskMessages(prompt: MessageBlock[], tools: ToolSpec[]): ChatMessage[] {
  const text = prompt.map((block) => (block.type === 'text' ? block.text : '')).join('');
  return [
    { role: 'system', content: systemPrompt(tools) },
    { role: 'user', content: text },
  ];
}
