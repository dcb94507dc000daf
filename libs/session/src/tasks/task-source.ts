import type { Message, Split, TaskSpec } from '@palestra/protocol';

/** Where a task stands: a split, and its position there. */
export interface TaskPosition {
  split: string;
  index: number;
}

/** Tasks that were uploaded for an environment. They never change, so answers may be kept. Errors are `PalestraError`s. */
export interface TaskSource {
  /** In the order of the upload. */
  splits(signal: AbortSignal): Promise<(Split & { num_tasks: number })[]>;
  /** Positions `start` to `stop` (exclusive), both within the split. */
  specs(split: string, start: number, stop: number, signal: AbortSignal): Promise<TaskSpec[]>;
  /** The conversation that the task brings along; null: the environment words its prompt. */
  prompt(place: TaskPosition, signal: AbortSignal): Promise<Message[] | null>;
  /** The first task of this specification that brings a prompt: most clients open their sessions by specification. */
  find(spec: TaskSpec, signal: AbortSignal): Promise<TaskPosition | null>;
  /** The task of this id, in the first split that has it. */
  findById(id: string, signal: AbortSignal): Promise<TaskPosition | null>;
}
