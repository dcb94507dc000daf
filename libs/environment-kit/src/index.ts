/** The schema library of tool arguments, so that an environment needs no dependency but the kit. */
export { z } from 'zod';
export * from './action.ts';
export * from './definition.ts';
export * from './host/environment-host.ts';
export { ToolRaisedError } from './host/episode.ts';
export type { CallResult } from './host/tool-output.ts';
export * from './link/client.ts';
export * from './link/in-process.ts';
export type { Link, LinkMethod, LinkMethods, LinkParams, LinkResult } from './link/methods.ts';
export { createLinkServer } from './link/server.ts';
export { parseLinkAddress } from './link/address.ts';
export * from './ors/server.ts';
export * from './serve.ts';
