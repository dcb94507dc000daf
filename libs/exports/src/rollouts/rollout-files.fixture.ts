import { loadZstd } from '@palestra/kit/zstd';
import type { RolloutExportFormat } from '@palestra/protocol';
import type { ExportedMessage, ExportedRollout } from './exported-rollout.ts';
import { rolloutFile } from '../index.ts';

/** A rollout as exports have it, and the bytes of files. */
export const compressors = { ZSTD: (await loadZstd()).decompress };

export function message(
  index: number,
  type: ExportedMessage['type'],
  content: string,
  more: Partial<ExportedMessage> = {},
): ExportedMessage {
  const none = { summary: null, content_reference: null, name: null, call_id: null, reward: null, metadata: null };
  return { index, type, content, is_finished: false, sent_at: new Date(1_700_000_000_000 + index), ...none, ...more };
}

export const transcript = (answer: string): ExportedMessage[] => [
  message(0, 'system_message', 'You play.'),
  message(1, 'user_message', 'Who was it?'),
  message(2, 'reasoning', 'Hm, the butler.'),
  message(3, 'assistant_message', 'I accuse. <tool_call>\n{"name": "accuse"}\n</tool_call>'),
  message(4, 'tool_call', `{"name": "${answer}"}`, { name: 'accuse', call_id: 'c1', metadata: '{"big": 12345678901234567890}' }),
  message(5, 'tool_result', 'noted', { call_id: 'c1', reward: 0.5, is_finished: true }),
];

export function rollout(k: number, more: Partial<ExportedRollout> = {}): ExportedRollout {
  const known = 'reported' as const;
  return {
    rollout_id: `00000000-0000-4000-8000-${String(k).padStart(12, '0')}`,
    org: 'acme',
    run: 'r',
    run_id: 'run-1',
    rollout_name: `n${k}`,
    source: 'generic',
    model: null,
    environment: 'acme/whodunit',
    environment_version: '3',
    variant: null,
    split: 'train',
    task_key: 't1',
    task_index: 7,
    task_spec: '{"seed": 1.0}',
    phase: 'train',
    phase_prov: known,
    step: 4,
    step_prov: 'inferred',
    policy_step: null,
    group_key: '-9007199254740993',
    group_prov: 'parsed',
    sample_idx: k,
    sample_prov: 'inferred',
    reward: 0.5,
    reward_prov: 'parsed',
    reward_reported: null,
    reward_positive: 0.5,
    max_reward: 0.5,
    last_reward: 0.5,
    reward_steps: 1,
    group_scored: 4,
    group_mean: 0.5,
    group_std: 0.5,
    advantage: 0,
    stop: 'finished',
    stop_prov: known,
    stop_raw: 'stop',
    failure: null,
    finished: true,
    turns: 1,
    turns_prov: known,
    num_messages: 6,
    tool_calls: 1,
    tool_errors: 0,
    tokens_out: 5,
    tokens_tool: null,
    tokens_prov: 'inferred',
    bytes: 123,
    gaps: 0,
    flags: ['stamped_turn'],
    latency_ms: null,
    telemetry_prov: 'unknown',
    verdict: null,
    session_id: null,
    metadata: '{"total_reward": 1.0}',
    rollout_info: null,
    annotations: null,
    lens_reward: 0.5,
    lens_success: null,
    lens_counted: true,
    normaliser_version: 1,
    started_at: new Date(1_700_000_000_000),
    received_at: new Date(1_700_000_001_000),
    last_at: new Date(1_700_000_002_000),
    messages: transcript('Eve'),
    ...more,
  } as ExportedRollout;
}

export async function* each<T>(items: Iterable<T>): AsyncGenerator<T> {
  yield* items;
}

export async function bytesOf(file: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of file) pieces.push(piece);
  return Buffer.concat(pieces);
}

export async function linesOf(file: AsyncIterable<Uint8Array>): Promise<ReturnType<typeof JSON.parse>[]> {
  const text = (await bytesOf(file)).toString();
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line));
}

export const options = () => {
  const skipped = { count: 0 };
  return { lineage: { query: 'reward:>0' }, onSkip: () => (skipped.count += 1), skipped };
};
export const arrayBufferOf = (bytes: Buffer) => new Uint8Array(bytes).buffer;
export const write = (rows: ExportedRollout[], format: RolloutExportFormat) => rolloutFile(each(rows), format, options());
