import type { GroupCandidate, JsonObject, Message, OutputBlock, Split, TaskSpec, ToolsAnswer } from '@palestra/protocol';
import type { CreateRequest, EnvironmentHost } from '../host/environment-host.ts';
import type { CallResult } from '../host/tool-output.ts';

/** The methods of the link, with parameters and result. */
export interface LinkMethods {
  environments: [params: null, result: string[]];
  tools: [params: { env: string | null }, result: ToolsAnswer];
  splits: [params: { env: string | null }, result: Split[]];
  numTasks: [params: { env: string | null; split: string }, result: number];
  task: [params: { env: string | null; split: string; index: number }, result: TaskSpec];
  taskRange: [params: { env: string | null; split: string; start: number | null; stop: number | null }, result: TaskSpec[]];
  create: [params: Omit<CreateRequest, 'isHeld'>, result: null];
  ready: [params: { sid: string }, result: null];
  prompt: [params: { sid: string }, result: OutputBlock[]];
  messages: [params: { sid: string }, result: Message[]];
  taskTools: [params: { sid: string }, result: ToolsAnswer];
  call: [params: { sid: string; name: string; input: JsonObject }, result: CallResult];
  scoreGroup: [params: { sid: string; env: string | null; candidates: GroupCandidate[] }, result: string];
  ping: [params: { sid: string }, result: null];
  delete: [params: { sid: string }, result: null];
}
export type LinkMethod = keyof LinkMethods;
export type LinkParams<M extends LinkMethod> = LinkMethods[M][0];
export type LinkResult<M extends LinkMethod> = LinkMethods[M][1];

/** The client side of a link. */
export interface Link {
  /** Rejects with the signal's reason if it aborts first. */
  request<M extends LinkMethod>(method: M, params: LinkParams<M>, signal: AbortSignal): Promise<LinkResult<M>>;
  close(): void;
}

type Handlers = { [M in LinkMethod]: (params: LinkParams<M>, signal: AbortSignal) => LinkResult<M> | Promise<LinkResult<M>> };

const nothing = (): null => null;

/** `isHeld` returns whether the connection is open. While it is, the client decides when its sessions end. */
export function linkHandlers(host: EnvironmentHost, isHeld: () => boolean): Handlers {
  return {
    environments: () => host.environments(),
    tools: ({ env }) => host.tools(env),
    splits: ({ env }) => host.splits(env),
    numTasks: ({ env, split }) => host.numTasks(env, split),
    task: ({ env, split, index }) => host.task(env, split, index),
    taskRange: ({ env, split, start, stop }) => host.taskRange(env, split, start, stop),
    create: (request) => host.create({ ...request, isHeld }).then(nothing),
    ready: ({ sid }, signal) => host.ready(sid, signal).then(nothing),
    prompt: ({ sid }, signal) => host.prompt(sid, signal),
    messages: ({ sid }, signal) => host.messages(sid, signal),
    taskTools: ({ sid }) => host.taskTools(sid),
    call: ({ sid, name, input }, signal) => host.call(sid, name, input, signal),
    scoreGroup: ({ sid, env, candidates }, signal) => host.scoreGroup(sid, env, candidates, signal),
    ping: ({ sid }) => {
      host.ping(sid);
      return null;
    },
    delete: ({ sid }) => host.delete(sid).then(nothing),
  };
}
