import type { Protocol } from '../http/protocol.ts';
import { openEnvDocumentation } from './openenv.openapi.ts';
import { openEnvPlugin } from './openenv.routes.ts';

/** Each environment as an OpenEnv server (docs/openenv.md). */
export const openEnvProtocol: Protocol = { mount: openEnvPlugin, documentation: openEnvDocumentation };
