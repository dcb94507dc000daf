import type { ExportedMessage } from './exported-rollout.ts';

export interface ToolCall {
  id: string;
  type: 'function';
  /** `arguments` is JSON text, as in OpenAI's format. */
  function: { name: string; arguments: string };
}

/** A message of OpenAI's chat completions format. */
export interface ChatTurn {
  role: 'system' | 'user' | 'assistant' | 'tool';
  /** null only for an assistant message with tool calls and no text. */
  content: string | null;
  tool_calls?: ToolCall[];
  tool_call_id?: string;
  /** Reasoning of the model before the message. Not part of OpenAI's format; only with `reasoning`. */
  reasoning_content?: string;
}

/**
 * Converts a transcript to valid chat messages of OpenAI's format. Consecutive text and calls of the model become one assistant message.
 * A result answers the oldest open call of its id and follows the message of that call. Ids are made unique, because trainers repeat
 * theirs. A call without result that is not at the end gets an empty result, because the format requires one. A result without a call
 * (some serialisers lose calls) becomes a user message.
 *
 * `<tool_call>` blocks in the text are removed if the same turn has the calls: SkyRL uploads both.
 */
export function chatMessages(messages: readonly ExportedMessage[], { reasoning = false } = {}): ChatTurn[] {
  const chat = new Conversation(reasoning);
  for (const message of messages) chat.add(message);
  chat.finish();
  return chat.turns;
}

class Conversation {
  readonly turns: ChatTurn[] = [];
  /** Open calls of the last assistant message: uploaded id to exported id. */
  #open: { uploaded: string | null; exported: string }[] = [];
  #assistant: ChatTurn | null = null;
  #thought: string[] = [];
  readonly #ids = new Map<string, number>();

  constructor(private readonly reasoning: boolean) {}

  add(message: ExportedMessage): void {
    const text = message.content ?? '';
    switch (message.type) {
      case 'system_message':
        return this.#other({ role: 'system', content: text });
      case 'user_message':
        return this.#other({ role: 'user', content: text });
      case 'reasoning':
        // Some models provide only a summary and no content.
        this.#thought.push(text === '' ? (message.summary ?? '') : text);
        return;
      case 'assistant_message':
        return this.#say(text);
      case 'tool_call':
        return this.#call(message.name ?? '', text, message.call_id);
      case 'tool_result':
        return this.#answer(text, message.call_id);
    }
  }

  /** Calls at the very end may stay open, unless other calls of their turn were answered. */
  finish(): void {
    if (this.#assistant && this.turns.at(-1) === this.#assistant) this.#ownTurn();
    if (this.turns.at(-1)?.role === 'tool') this.#close();
  }

  #other(turn: ChatTurn): void {
    this.#close();
    this.turns.push(turn);
  }

  #say(text: string): void {
    const turn = this.#ownTurn();
    const added = turn.tool_calls ? withoutCallBlocks(text) : text;
    turn.content = turn.content === null || turn.content === '' ? added : `${turn.content}\n${added}`;
  }

  #call(name: string, text: string, callId: string | null): void {
    const turn = this.#ownTurn();
    if (!turn.tool_calls) {
      turn.tool_calls = [];
      const content = withoutCallBlocks(turn.content ?? '');
      turn.content = content === '' ? null : content;
    }
    const exported = this.#unique(callId ?? `call_${this.turns.length}_${turn.tool_calls.length}`);
    turn.tool_calls.push({ id: exported, type: 'function', function: { name, arguments: text.trim() === '' ? '{}' : text } });
    this.#open.push({ uploaded: callId, exported });
  }

  #answer(text: string, callId: string | null): void {
    const at = this.#open.findIndex(({ uploaded }) => uploaded === callId);
    if (at < 0) return this.#other({ role: 'user', content: text });
    const [call] = this.#open.splice(at, 1);
    this.turns.push({ role: 'tool', content: text, tool_call_id: call!.exported });
  }

  /** The last message while the model still writes it, which ends with the first answer to one of its calls. */
  #ownTurn(): ChatTurn {
    if (!this.#assistant || this.turns.at(-1) !== this.#assistant) {
      this.#close();
      this.#assistant = { role: 'assistant', content: null };
      this.turns.push(this.#assistant);
    }
    const before = this.#assistant.reasoning_content;
    const thought = [...(before === undefined ? [] : [before]), ...this.#thought.splice(0)].join('\n');
    if (this.reasoning && thought !== '') this.#assistant.reasoning_content = thought;
    return this.#assistant;
  }

  /** Another message follows, so open calls will not be answered. */
  #close(): void {
    for (const { exported } of this.#open.splice(0)) this.turns.push({ role: 'tool', content: '', tool_call_id: exported });
    this.#assistant = null;
  }

  #unique(id: string): string {
    const seen = (this.#ids.get(id) ?? 0) + 1;
    this.#ids.set(id, seen);
    return seen === 1 ? id : this.#unique(`${id}-${seen}`);
  }
}

const OPENING = '<tool_call>';
const CLOSING = '</tool_call>';

function withoutCallBlocks(text: string): string {
  if (!text.includes(OPENING)) return text;
  const kept: string[] = [];
  let at = 0;
  for (;;) {
    const start = text.indexOf(OPENING, at);
    const end = start < 0 ? -1 : text.indexOf(CLOSING, start);
    if (end < 0) break;
    kept.push(text.slice(at, start));
    at = end + CLOSING.length;
  }
  return `${kept.join('')}${text.slice(at)}`.trimEnd();
}
