import { createHash, randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import type { SharedPalestra } from '../support/palestra.ts';
import { messageEvents, type UploadedMessage, uploadEvents } from './upload.ts';

export const RUN_A = 'insights / a';
export const RUN_B = 'insights / b';
export const NAMES_RUN = 'insights / names alone';
const SAMPLES = 4;
/** Task 0 is solved before this step and unsolved from it on. */
const REGRESSED_AT = 4;

/** One rollout as its trainer uploads it. */
export interface Sent {
  run: string;
  id: string;
  step: number;
  task: number;
  sample: number;
  reward: number | null;
  stop: string;
  calls: { tool: string; arguments: string; valid: boolean; error: string | null }[];
  messages: UploadedMessage[];
}

/** A number from 0 to 99, equal for equal words. */
const chance = (...words: (string | number)[]): number => createHash('sha256').update(words.join('/')).digest().readUInt16BE(0) % 100;

function callsOf(run: string, step: number, task: number, sample: number): Sent['calls'] {
  const of = (what: string) => chance(run, step, task, sample, what);
  const calls: Sent['calls'] = [];
  const valid = of('arguments') < 70;
  const place = `room ${of('place')}`;
  const wrong = of('wrong') < 50 ? JSON.stringify({ place }) : '{"room":';
  const fails = of('fails') < 20;
  calls.push({
    tool: 'search',
    arguments: valid ? JSON.stringify({ room: place }) : wrong,
    valid,
    error: fails ? `Traceback:\nValueError: no room ${of('number')} in the house` : null,
  });
  if (of('interview') < 50) calls.push({ tool: 'interview', arguments: '{"suspect":"Moss"}', valid: true, error: null });
  if (of('notes') < 30) calls.push({ tool: 'read_notes', arguments: '{}', valid: true, error: null });
  return calls;
}

function rewardOf(run: string, step: number, task: number, sample: number): number | null {
  const at = chance(run, step, task, sample, 'reward');
  if (at < 8) return null;
  if (task === 0) return step < REGRESSED_AT ? 1 : 0;
  return at < 30 + 10 * step + (run === RUN_B ? 15 : 0) ? 1 : 0;
}

function sentOf(run: string, step: number, task: number, sample: number): Sent {
  const calls = callsOf(run, step, task, sample);
  const reward = rewardOf(run, step, task, sample);
  const messages: UploadedMessage[] = [{ type: 'user_message', content: `Case ${task}. Find who did it.` }];
  for (const [i, call] of calls.entries()) {
    const isLast = i === calls.length - 1;
    messages.push(
      { type: 'tool_call', name: call.tool, callId: `c${i}`, content: call.arguments },
      {
        type: 'tool_result',
        callId: `c${i}`,
        content: call.error ?? 'Dust, and a letter.',
        ...(call.error !== null && { metadata: { is_error: true } }),
        ...(isLast && reward !== null && { reward, isFinished: true }),
      },
    );
  }
  return { run, id: randomUUID(), step, task, sample, reward, stop: reward === null ? 'max_turns' : 'finished', calls, messages };
}

/** `steps` × `tasks` × 4 rollouts in upload order. */
export function sentRun(run: string, steps: number, tasks: number): Sent[] {
  const sent: Sent[] = [];
  for (let step = 0; step < steps; step++)
    for (let task = 0; task < tasks; task++) for (let sample = 0; sample < SAMPLES; sample++) sent.push(sentOf(run, step, task, sample));
  return sent;
}

/** `named`: only the name of the rollout identifies step and task. */
export function eventsOf({ run, id, step, task, sample, stop, messages }: Sent, named = false): object[] {
  const start = {
    eventType: 'rollout',
    eventId: id,
    timestamp: Date.now(),
    runName: run,
    rolloutName: `case-${task}-at${step}-no${sample}`,
    environment: 'palestra/whodunit',
    split: 'train',
    ...(!named && { rollout_info: { task_index: task, current_step: step } }),
    run_info: { model_name: run === RUN_B ? 'Qwen2.5-7B' : 'Qwen2.5-3B' },
    metadata: { stop_reason: stop, ...(!named && { sample_idx: sample, n_samples: SAMPLES, group_id: `${step}-${task}` }) },
  };
  return [start, ...messageEvents(id, messages)];
}

/** Returns the uploaded rollouts. */
export async function uploadSent(palestra: SharedPalestra, sent: readonly Sent[], named = false): Promise<object[]> {
  const events = sent.flatMap((one) => eventsOf(one, named));
  for (let at = 0; at < events.length; at += 2_000) await uploadEvents(palestra, events.slice(at, at + 2_000));
  return events;
}
export const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
export const scored = (sent: readonly Sent[]): number[] => sent.flatMap(({ reward }) => reward ?? []);
export const tidy = (text: string) => text.replaceAll(/\s+/g, ' ').trim();
/** Texts of the cells of a row of a DataTable. */
export async function cellsOf(page: Page, table: string, row: string): Promise<string[]> {
  const found = page.getByRole('table', { name: table }).locator('[data-row]').filter({ hasText: row }).first();
  await found.waitFor();
  return (await found.getByRole('cell').allInnerTexts()).map(tidy);
}
