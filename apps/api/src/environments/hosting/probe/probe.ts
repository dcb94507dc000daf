import { createHash, randomUUID } from 'node:crypto';
import { resultText, textOf, toolsWithTerminal } from '@palestra/environment-kit';
import { HostingError } from '@palestra/hosting';
import { type EnvironmentDiscoveryView, type JsonValue, PalestraError } from '@palestra/protocol';
import { type Backend, type BackendSession, ToolFailedError } from '@palestra/session';
import { canonicalJson } from '../../task-sets/canonical-json.ts';
import { minimalInput } from './minimal-input.ts';

/** Characters of the prompt and of the result that are stored. */
const MAX_CHARS = 20_000;
/** Tasks of a split that its digest reads. */
const DIGESTED_TASKS = 100;
const CLOSE_MS = 10_000;

/** What one episode of a fixed task showed: the first task of the first split that has any. */
export interface Probe {
  variant: string;
  /** Null: the environment has no tasks. */
  split: string | null;
  prompt: string;
  /** Null: the environment has no tools. `error`: why the call was refused, or failed; null when it did not. */
  call: { tool: string; input: JsonValue; output: string; error: string | null } | null;
  /** One for each call; null: without reward. */
  rewards: (number | null)[];
  /** Digest of the first tasks of each split, in the order of variants and splits. */
  tasks: { variant: string; split: string; num_tasks: number | null; digest: string }[];
}

export interface Probed {
  probe: Probe;
  toolsDigest: string;
  tasksDigest: string;
}

/**
 * Plays the beginning of one episode: prompt, tools, one call with the smallest valid input. Whether the tool accepts that input does not
 * matter; a server that does not answer, or not by its protocol, rejects with the error of the backend.
 */
export async function probeBackend(backend: Backend, { variants }: EnvironmentDiscoveryView, signal: AbortSignal): Promise<Probed> {
  const tasks = await digestTasks(backend, variants, signal);
  const chosen = variants.find(({ is_default: isDefault }) => isDefault) ?? variants[0];
  if (chosen === undefined) throw new HostingError('instance_failed', 'The server offers no environment.');
  const split = chosen.splits.find(({ num_tasks: count }) => count !== 0)?.name ?? null;
  if (split === null) throw new HostingError('instance_failed', `The environment ${JSON.stringify(chosen.name)} has no tasks.`);
  const task = { kind: 'index' as const, split, index: 0 };
  const sid = `probe-${randomUUID()}`;
  const ref = await backend.create({ sid, env: chosen.name, task, toolsetName: null, secrets: {} }, signal);
  const session = backend.session(ref);
  try {
    const prompt = textOf(await session.prompt(signal)).slice(0, MAX_CHARS);
    const { call, reward } = await callOnce(session, signal);
    return {
      probe: { variant: chosen.name, split, prompt, call, rewards: call === null ? [] : [reward], tasks },
      toolsDigest: digestOf(variants.map(({ name, tools }) => [name, tools] as unknown as JsonValue)),
      tasksDigest: digestOf(tasks as unknown as JsonValue),
    };
  } finally {
    await session.delete(AbortSignal.timeout(CLOSE_MS)).catch(() => {});
  }
}

async function callOnce(session: BackendSession, signal: AbortSignal): Promise<{ call: Probe['call']; reward: number | null }> {
  const tool = toolsWithTerminal(await session.taskTools(signal))[0];
  if (tool === undefined) return { call: null, reward: null };
  const input = minimalInput(tool.input_schema);
  const called = { tool: tool.name, input };
  try {
    const result = await session.call({ ...called, taskId: randomUUID() }, signal);
    const output = resultText(result.text).slice(0, MAX_CHARS);
    return { call: { ...called, output, error: result.ok ? null : (result.reason ?? 'refused') }, reward: result.reward };
  } catch (error) {
    if (!(error instanceof ToolFailedError)) throw error;
    return { call: { ...called, output: error.message.slice(0, MAX_CHARS), error: 'failed' }, reward: null };
  }
}

async function digestTasks(backend: Backend, variants: EnvironmentDiscoveryView['variants'], signal: AbortSignal): Promise<Probe['tasks']> {
  const tasks: Probe['tasks'] = [];
  for (const { name: variant, splits } of variants) {
    for (const { name: split, num_tasks: count } of splits) {
      const first = count === 0 ? [] : await firstTasks(backend, variant, split, signal);
      tasks.push({ variant, split, num_tasks: count, digest: digestOf(first) });
    }
  }
  return tasks;
}

/** A server that cannot list tasks has none to compare. */
async function firstTasks(backend: Backend, variant: string, split: string, signal: AbortSignal): Promise<JsonValue[]> {
  try {
    return (await backend.taskRange(variant, split, 0, DIGESTED_TASKS, signal)) as JsonValue[];
  } catch (error) {
    if (error instanceof PalestraError && error.code === 'tasks_not_listable') return [];
    throw error;
  }
}

const digestOf = (value: JsonValue): string => `sha256:${createHash('sha256').update(canonicalJson(value)).digest('hex')}`;
