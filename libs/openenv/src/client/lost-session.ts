import type { BackendSession } from '@palestra/session';
import type { OpenEnvSession } from '../wire/native.ts';
import { sessionLost } from '../wire/server-replies.ts';

const lost = (): Promise<never> =>
  Promise.reject(sessionLost('its connection to the OpenEnv server ended with the process that held it, and the episode with that.'));

/** A session whose episode ended with its socket. */
export class LostSession implements BackendSession {
  readonly native: OpenEnvSession = { exchange: lost, state: lost, withTasks: () => this.native };
  ready = lost;
  prompt = lost;
  messages = lost;
  taskTools = lost;
  call = lost;
  scoreGroup = lost;
  ping = lost;

  async delete(): Promise<void> {}
}
