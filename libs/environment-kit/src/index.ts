/// <reference types="node" preserve="true" />
import '@palestra/kit/node-version';
/** The schema library for tool arguments, so that an environment depends only on the kit. */
export { z } from 'zod';
export {
  ACTION_TOOL,
  type ActionEnvironmentDefinition,
  defineActionEnvironment,
  type Observation,
  type Opening,
  type Outcome,
} from './action.ts';
export {
  type Session,
  type ToolResult,
  type Tool,
  tool,
  type Tools,
  type Environment,
  defineEnvironment,
  type EnvironmentDefinition,
  type ToolReturn,
  textBlock,
  imageBlock,
} from './definition.ts';
export { EnvironmentHost, type HostOptions } from './host/environment-host.ts';
export { ToolRaisedError } from './host/episode.ts';
export type { CallResult } from './host/tool-output.ts';
export { LinkClient } from './link/client.ts';
export type { Link, LinkMethod, LinkMethods, LinkParams, LinkResult } from './link/methods.ts';
export { createLinkServer } from './link/server.ts';
export { parseLinkAddress } from './link/address.ts';
export type { PlayedResult, Player, PlayedSession, ToolInput } from './play/player.ts';
export { playTask, type PlayTaskOptions, type PlayedCall, type PlayedTask, solver } from './play/play-task.ts';
export { InfrastructureError } from './infrastructure-error.ts';
export { judge, type JudgeOptions } from './rubric/judge.ts';
export { gate, type Rubric, score, type Score, scoredResult, sequential, weighted } from './rubric/rubric.ts';
export { randomPlayer } from './play/random-player.ts';
export { resultText, type Subject, type SubjectEpisode, textOf, toolsWithTerminal } from './play/subject.ts';
export { validateEnvironment, type ValidateOptions, validateSubject } from './validate/validate.ts';
export { SeededRandom } from './random.ts';
export { createOrsServer, type OrsServerOptions } from './ors/server.ts';
export { type RunningServer, serve, serveAsChild, type ServeAsChildOptions, type ServeOptions } from './serve.ts';
