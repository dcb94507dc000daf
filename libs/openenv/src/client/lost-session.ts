import type { BackendSession, OpenEnvSession } from '@palestra/session';
import { sessionLost } from '../wire/server-replies.ts';

const lost = (): Promise<never> =>
  Promise.reject(sessionLost('its connection to the OpenEnv server ended with the process that held it, and the episode with that.'));

/** An episode that ended with its socket. */
export class LostSession implements BackendSession {
  readonly openenv: OpenEnvSession = { exchange: lost };
  ready = lost;
  prompt = lost;
  messages = lost;
  taskTools = lost;
  call = lost;
  scoreGroup = lost;
  ping = lost;

  async delete(): Promise<void> {}
}
