import type { Protocol } from '../http/protocol.ts';
import { orsDocumentation } from './ors.openapi.ts';
import { orsPlugin } from './ors.routes.ts';

/** The Open Reward Standard at the root of the origin (docs/reference/ors.md). */
export const orsProtocol: Protocol = { mount: orsPlugin, documentation: orsDocumentation };
