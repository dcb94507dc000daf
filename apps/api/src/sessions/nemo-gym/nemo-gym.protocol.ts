import type { Protocol } from '../http/protocol.ts';
import { nemoGymDocumentation } from './nemo-gym.openapi.ts';
import { nemoGymPlugin } from './nemo-gym.routes.ts';

/** Each environment as a resources server of NeMo Gym (docs/trainers/nemo-gym.md). */
export const nemoGymProtocol: Protocol = { mount: nemoGymPlugin, documentation: nemoGymDocumentation };
