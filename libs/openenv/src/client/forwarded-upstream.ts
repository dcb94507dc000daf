import { PalestraError } from '@palestra/protocol';
import type { Backend, BackendSession, NativeServer } from '@palestra/session';
import { OPENENV, type OpenEnvSession, type OpenEnvShape, type OpenEnvUpstream, openEnvUpstreamOf } from '../wire/native.ts';
import { serverWithTasks, sessionWithTasks } from './uploaded-tasks.ts';

/**
 * Equal OpenEnv servers as one: `choose` returns one of them for each request. Their shape is read once, because equal servers have the same.
 */
export function forwardedUpstream(choose: (signal: AbortSignal) => Promise<Backend>): NativeServer {
  let shape: OpenEnvShape | null = null;
  const server = async (signal: AbortSignal): Promise<OpenEnvUpstream> => {
    const upstream = openEnvUpstreamOf(await choose(signal));
    if (upstream === null) throw new PalestraError('backend_invalid', { detail: 'The environment server does not speak OpenEnv.' });
    return upstream;
  };
  const forwarded: OpenEnvUpstream = {
    protocol: OPENENV,
    withTasks: (tasks) => serverWithTasks(forwarded, tasks),
    shape: async (signal) => (shape ??= await (await server(signal)).shape(signal)),
    relay: async (request, signal) => (await server(signal)).relay(request, signal),
  };
  return forwarded;
}

/** The messages of an episode whose server `run` finds; `run` passes an error on or translates it. */
export function forwardedSession(run: <T>(ask: (session: BackendSession) => Promise<T>) => Promise<T>): OpenEnvSession {
  const native = ({ native: own }: BackendSession): OpenEnvSession => {
    if (own === undefined) throw new PalestraError('backend_invalid', { detail: 'The environment server does not speak OpenEnv.' });
    return own;
  };
  const forwarded: OpenEnvSession = {
    exchange: (message, call, signal) => run((session) => native(session).exchange(message, call, signal)),
    state: (signal) => run((session) => native(session).state(signal)),
    withTasks: (tasks) => sessionWithTasks(forwarded, tasks),
  };
  return forwarded;
}
