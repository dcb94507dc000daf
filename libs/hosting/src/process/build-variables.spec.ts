import { expect, test } from 'vitest';
import { inheritedVariables } from './build-variables.ts';

test('a build gets where packages come from, and no credentials', () => {
  const { variables, cut } = inheritedVariables({
    PATH: '/a@b:/usr/bin',
    DATABASE_URL: 'postgresql://a:b@c/d',
    PALESTRA_SECRET_KEY: 'secret',
    PIP_INDEX_URL: 'https://me:se%40cret@index.test/simple?token=secret',
    PIP_EXTRA_INDEX_URL: 'https://one.test/simple https://secret@two.test/simple',
    PIP_FIND_LINKS: '/opt/a@b/wheels',
    PIP_CONFIG_FILE: '/home/me/pip.conf',
    UV_INDEX: 'inner=https://me:secret@index.test/simple',
    UV_INDEX_INNER_PASSWORD: 'secret',
    UV_PUBLISH_TOKEN: 'secret',
    NPM_CONFIG_REGISTRY: 'https://registry.test/',
    NPM_CONFIG__AUTH: 'secret',
    npm_config_userconfig: '/home/me/.npmrc',
    https_proxy: 'me:secret@proxy.test:3128',
    HTTP_PROXY: 'http://me:se@cret@proxy.test:3128',
  });
  expect(variables).toEqual({
    PATH: '/a@b:/usr/bin',
    PIP_INDEX_URL: 'https://index.test/simple',
    PIP_EXTRA_INDEX_URL: 'https://one.test/simple https://two.test/simple',
    PIP_FIND_LINKS: '/opt/a@b/wheels',
    UV_INDEX: 'inner=https://index.test/simple',
    NPM_CONFIG_REGISTRY: 'https://registry.test/',
    https_proxy: 'proxy.test:3128',
    HTTP_PROXY: 'http://proxy.test:3128',
  });
  expect(cut).toEqual(['PIP_INDEX_URL', 'PIP_EXTRA_INDEX_URL', 'UV_INDEX', 'https_proxy', 'HTTP_PROXY']);
});
