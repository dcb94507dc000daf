import { randomUUID } from 'node:crypto';
import type { OpenEnvBackend } from '@palestra/openenv/client';
import { PalestraError } from '@palestra/protocol';
import type { BackendCreate, BackendSession, ToolCallResult } from '@palestra/session';
import { expect } from 'vitest';

/** What specs of the OpenEnv backend do with it. */

export const soon = () => AbortSignal.timeout(60_000);
export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

export async function open(backend: OpenEnvBackend, task: BackendCreate['task'] = { kind: 'spec', spec: {} }): Promise<BackendSession> {
  const request: BackendCreate = { sid: randomUUID(), env: null, task, toolsetName: null, secrets: {} };
  return backend.session(await backend.create(request, soon()));
}

/** As `open`, of a server whose slots come back a moment after their sessions have ended. */
export async function openWhenFree(backend: OpenEnvBackend): Promise<BackendSession> {
  for (const deadline = Date.now() + 30_000; ;) {
    try {
      return await open(backend);
    } catch (error) {
      if (!(error instanceof PalestraError) || error.code !== 'capacity_exhausted' || Date.now() > deadline) throw error;
      await pause(100);
    }
  }
}

export const call = async (session: BackendSession, tool: string, input: object = {}): Promise<ToolCallResult> =>
  session.call({ tool, input: input as Record<string, unknown>, taskId: randomUUID() }, soon());

/** A call of `step`, its one text read as JSON. */
export async function acted(session: BackendSession, input: object) {
  const result = await call(session, 'step', input);
  const { output } = JSON.parse(result.text) as { output: { blocks: { text: string }[]; metadata: object | null } };
  return { ...result, observation: JSON.parse(output.blocks[0]!.text) as unknown, metadata: output.metadata };
}

/** The texts of a tool's result. */
export function textsOf({ text }: ToolCallResult): string[] {
  const { output } = JSON.parse(text) as { output: { blocks: { text: string }[] } };
  return output.blocks.map((block) => block.text);
}

export async function rejection(promise: Promise<unknown>): Promise<PalestraError> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(PalestraError);
  return error as PalestraError;
}
