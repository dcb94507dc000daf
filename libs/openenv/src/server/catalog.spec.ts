import type { HostedEnvironment } from '@palestra/session';
import { expect, test } from 'vitest';
import { catalogOf } from './catalog.ts';
import type { EnvironmentShape } from './environment-info.ts';

const COMMIT = '0123456789abcdef0123456789abcdef01234567';
const shape = {
  metadata: { description: 'from metadata' },
  toolSpecs: ['look', 'reset', 'Step', 'finish'].map((name) => ({ name, description: '', input_schema: null })),
} as unknown as EnvironmentShape;
const hosted = (githubUrl: string | null, description = 'A house “with” rooms.') =>
  ({ owner: 'acme', name: 'house', about: { description, readme: null, version: 1, githubUrl } }) as HostedEnvironment;
const tree = (path: string) => `https://github.com/acme/envs/tree/${COMMIT}/${path}`;
const url = 'https://envs.example.org/openenv/acme/house';

test('a card names the commit, the tools of agents and where the environment is hosted', () => {
  const entry = {
    identifier: expect.stringMatching(new RegExp(`^urn:air:envs.example.org:acme:[0-9a-f]{64}:${COMMIT}$`)),
    capabilities: ['look', 'finish'],
    metadata: { hosted_at: url },
    data: { source: { id: 'acme/envs', uri: 'https://github.com/acme/envs.git', path: 'envs/house', revision: COMMIT } },
  };
  expect(catalogOf(shape, hosted(tree('envs/house')), url)).toMatchObject({
    publisher: 'envs.example.org',
    inventory: { root: 'envs', paths: ['envs/house'] },
    entries: [entry],
    complete: true,
    digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
  });
});

test('a service without a public name, and an environment without a description', () => {
  expect(catalogOf(shape, hosted(tree('house'), ''), 'http://127.0.0.1:8000/openenv/acme/house')).toMatchObject({
    publisher: 'palestra.localhost',
    inventory: { root: '.', paths: ['house'] },
    entries: [{ description: 'from metadata' }],
  });
});

test.each([
  null,
  'https://github.com/acme/envs',
  'https://github.com/acme/envs/tree/main/house',
  tree('../house'),
  tree(''),
  `https://evil.example/${COMMIT}/house`,
])('no card for %j', (githubUrl) => {
  expect(() => catalogOf(shape, hosted(githubUrl), url)).toThrow(expect.objectContaining({ code: 'not_available' }));
});
