import { defineEnvironment, serve, tool, z } from '@palestra/environment-kit';
import type { DeployView, SessionView } from '@palestra/protocol';
import { vi } from 'vitest';
import type { SharedPalestra } from '../support/palestra.ts';
import { apiOf } from './playground.environments.ts';

const garden = defineEnvironment({
  name: 'deployed',
  splits: ['train'],
  tasks: () => [{}],
  prompt: () => 'Who cut the roses?',
  tools: { ask: tool({ description: 'Asks.', input: z.object({}), run: () => 'The butler did.' }) },
});

/**
 * An environment `deployed` that was deployed by the URL of its server, which needs no engine, with an instance that had a session; and one
 * `undeployed` without a version.
 */
export async function startDeployed(palestra: SharedPalestra) {
  const api = apiOf(() => palestra);
  const running = await serve([garden]);
  const address = `/v1/environments/${palestra.namespace}/deployed`;
  const source = { kind: 'url', urls: [running.url] };
  const { id } = await api<DeployView>('POST', `${address}/deploys`, { source, settings: {}, create: true });
  const hasEnded = async () => (await api<DeployView>('GET', `/v1/deploys/${id}`)).ended_at !== null;
  await vi.waitUntil(hasEnded, { timeout: 60_000, interval: 100 });
  const { sid } = await api<SessionView>('POST', '/v1/sessions', {
    environment: `${palestra.namespace}/deployed`,
    split: 'train',
    index: 0,
  });
  await api('POST', '/call', { name: 'ask', input: {} }, sid);
  await api('DELETE', `/v1/sessions/${sid}`);
  await api('POST', '/v1/environments', { name: 'undeployed' });
  return {
    /** Path of a page of the environment. */
    page: (search: string) => `/environments/${palestra.namespace}/deployed?${search}`,
    undeployed: `/environments/${palestra.namespace}/undeployed`,
    deploy: id,
    close: () => running.close(),
  };
}
