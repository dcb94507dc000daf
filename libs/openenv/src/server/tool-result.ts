import { type JsonObject, type OutputBlock, parseJson, type RunToolOutput, stringifyJson } from '@palestra/protocol';
import type { CallOutcome } from '@palestra/session';

/** A tool result in OpenEnv's form (docs/reference/openenv.md#serialization), as JSON texts. */
export interface ToolResult {
  /** `{content, structured_content, meta, data, is_error}` */
  result: string;
  /** null: no metadata. */
  metadata: string | null;
}

export type ToolErrorType = 'execution_error' | 'invalid_args' | 'transport_error' | 'tool_not_found' | 'timeout';

type CompletedCall = CallOutcome & { type: 'result' };

/** `JSON.parse` is enough without metadata: the reward is in the outcome. */
function parseOutput({ text }: CompletedCall): RunToolOutput {
  return (text.includes('"metadata":null') ? JSON.parse(text) : parseJson(text)) as RunToolOutput;
}

export function toolResultOf(outcome: CompletedCall): ToolResult {
  const output = parseOutput(outcome);
  if (!output.ok) return { result: 'null', metadata: null };
  const { blocks, metadata } = output.output;
  return { result: resultText(blocks, metadata), metadata: isEmpty(metadata) ? null : stringifyJson(metadata) };
}

/** The error of a call that was refused. */
export function refusalOf(outcome: CompletedCall, tool: string): { type: ToolErrorType; message: string } {
  const output = parseOutput(outcome);
  const message = output.ok ? '' : output.error;
  switch (outcome.reason) {
    case 'not_found':
      return { type: 'tool_not_found', message: `Unknown tool: '${tool}'` };
    case 'input_validation':
      return { type: 'invalid_args', message };
    default:
      return { type: 'execution_error', message };
  }
}

/** The observation of an action environment: JSON text of an object without metadata. */
export function observationOf(outcome: CompletedCall): { observation: string; metadata: string | null } {
  const output = parseOutput(outcome);
  if (!output.ok) return { observation: '{}', metadata: null };
  const { blocks, metadata } = output.output;
  return { observation: blocksObservation(blocks), metadata: isEmpty(metadata) ? null : stringifyJson(metadata) };
}

/** The object in the text; any other text becomes `{"text": ...}`. */
export function blocksObservation(blocks: readonly { type: string }[]): string {
  const texts = blocks.filter((block): block is { type: 'text'; text: string } => block.type === 'text').map(({ text }) => text);
  return textObservation(texts.join('\n'));
}

function textObservation(text: string): string {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return text.trim();
  } catch {
    // Not JSON.
  }
  return JSON.stringify({ text });
}

/** Puts `metadata` first in an observation. Metadata of the observation itself stays. */
export function withMetadata(metadata: string | null, observation: string): string {
  const rest = observation.slice(1).trimStart();
  return rest === '}' ? `{"metadata":${metadata ?? '{}'}}` : `{"metadata":${metadata ?? '{}'},${rest}`;
}

export const isEmpty = (metadata: JsonObject | null | undefined): boolean =>
  metadata === null || metadata === undefined || Object.keys(metadata).length === 0;

function textResult(words: string): string {
  const text = JSON.stringify(words);
  return `{"content":[{"type":"text","text":${text},"annotations":null,"meta":null}],"structured_content":{"result":${text}},"meta":null,"data":${text},"is_error":false}`;
}

function resultText(blocks: OutputBlock[], metadata: JsonObject | null): string {
  const [only] = blocks;
  const structured = metadata?.['structured_content'];
  if (blocks.length === 1 && only!.type === 'text' && structured === undefined) return textResult(only!.text);
  const content = JSON.stringify(
    blocks.map((block) =>
      block.type === 'text'
        ? { type: 'text', text: block.text, annotations: null, meta: null }
        : { type: 'image', data: block.data, mimeType: block.mimeType, annotations: null, meta: null },
    ),
  );
  const textual = blocks.every(({ type }) => type === 'text');
  const words =
    blocks.length === 0 ? 'null' : textual ? JSON.stringify(blocks.map((block) => (block as { text: string }).text).join('\n')) : content;
  const data = structured === undefined ? words : stringifyJson(structured);
  const structuredText = structured !== undefined ? data : textual && blocks.length > 0 ? `{"result":${words}}` : 'null';
  return `{"content":${content},"structured_content":${structuredText},"meta":null,"data":${data},"is_error":false}`;
}
