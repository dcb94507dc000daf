import {
  type OutputBlock,
  parseJson,
  type RunToolOutput,
  type Split,
  type TaskSpec,
  type ToolsAnswer,
  type ToolSpec,
} from '@palestra/protocol';
import type { Environment } from '../definition.ts';
import { EnvironmentHost } from '../host/environment-host.ts';
import type { PlayedResult } from './player.ts';

/** An environment that can be played: a definition in this process, or a server. */
export interface Subject {
  name: string;
  /** The definition with its players and solutions; null for a server. */
  environment: Environment | null;
  /** The declared range of the total reward of an episode, or null. */
  rewardRange: readonly [number, number] | null;
  splits(): Promise<readonly Split[]>;
  numTasks(split: string): Promise<number>;
  /** The tasks from `start` to `stop` (exclusive, clamped). */
  tasks(split: string, start: number, stop: number): Promise<readonly TaskSpec[]>;
  /** Resolves when setup has ended. Rejects with the error of the environment. */
  open(task: SubjectTask): Promise<SubjectEpisode>;
  close(): Promise<void>;
}

export type SubjectTask = { split: string; index: number } | { task: TaskSpec };

export interface SubjectResult extends PlayedResult {
  /** Why the call was refused (`input_validation`, `not_found`, `episode_finished`, ...), or null. */
  refused: string | null;
  /** The JSON of the result, for comparisons. */
  json: string;
}

export interface SubjectEpisode {
  prompt: string;
  /** With the terminal tool. */
  tools: readonly ToolSpec[];
  /** Rejects if the tool failed. */
  call(tool: string, input: Record<string, unknown>): Promise<SubjectResult>;
  close(): Promise<void>;
}

/** Plays the environment in this process. */
export function environmentSubject(environment: Environment): Subject {
  // Errors of `teardown` are the author's; a log line would hide the report.
  const host = new EnvironmentHost([environment], { warn: () => {} });
  let opened = 0;
  return {
    name: environment.name,
    environment,
    rewardRange: environment.rewardRange ?? null,
    splits: async () => host.splits(null),
    numTasks: (split) => host.numTasks(null, split),
    tasks: (split, start, stop) => host.taskRange(null, split, start, stop),
    async open(chosen) {
      const sid = `episode-${(opened += 1)}`;
      const task = 'task' in chosen ? { kind: 'spec' as const, spec: chosen.task } : { kind: 'index' as const, ...chosen };
      await host.create({ sid, env: null, task, toolsetName: null, secrets: {} });
      try {
        return {
          prompt: textOf(await host.prompt(sid)),
          tools: toolsWithTerminal(await host.taskTools(sid)),
          async call(tool, input) {
            const { text: json, reason, reward, finished } = await host.call(sid, tool, input);
            return { text: resultText(json), reward, finished, refused: reason, json };
          },
          close: () => host.delete(sid),
        };
      } catch (error) {
        await host.delete(sid);
        throw error;
      }
    },
    close: () => host.close(),
  };
}

/** The text blocks; an image is `[image]`. */
export const textOf = (blocks: readonly (OutputBlock | { type: string; text?: string })[]): string =>
  blocks.map((block) => ('text' in block && block.text !== undefined ? block.text : `[${block.type}]`)).join('\n');

/** The text of the result of a call: its blocks, or why it was refused. */
export function resultText(json: string): string {
  const result = parseJson(json) as RunToolOutput;
  return result.ok ? textOf(result.output.blocks) : result.error;
}

export function toolsWithTerminal({ tools, terminal_tool: terminal }: ToolsAnswer): ToolSpec[] {
  if (!terminal || tools.some(({ name }) => name === terminal.name)) return tools;
  const { name, arg, description } = terminal;
  const input_schema = arg === null ? null : { type: 'object', properties: { [arg]: { type: 'string' } }, required: [arg] };
  return [...tools, { name, description, input_schema }];
}
