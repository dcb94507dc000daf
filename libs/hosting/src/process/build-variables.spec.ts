import { describe, expect, test } from 'vitest';
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

describe('credentials with characters that a URL should not have', () => {
  const cutOf = (name: string, value: string) => inheritedVariables({ [name]: value }).variables[name];

  test('a URL is read as one, and left out when it is not certain where its password ends', () => {
    for (const name of ['PIP_INDEX_URL', 'UV_EXTRA_INDEX_URL', 'NPM_CONFIG_REGISTRY', 'https_proxy', 'ALL_PROXY'])
      for (const [value, safe] of [
        ['https://aws:ab=cd@h/s', 'https://h/s'],
        ['https://u:a,b@h/s', 'https://h/s'],
        ['https://u:p@@h:8443/s/', 'https://h:8443/s/'],
        ['https://token@h/s#part', 'https://h/s'],
        ['https://h/s?a=1&b=2', 'https://h/s'],
        ['u:p=q@h:3128', 'h:3128'],
        ['h:3128', 'h:3128'],
        ['https://h', 'https://h'],
        ['https://u:a/b@h/s', undefined],
        ['https://u:1/b@h/s', undefined],
        ['https://u:a?b@h/s', undefined],
        ['https://u:1?b@h/s', undefined],
        ['https://u:1#b@h/s', undefined],
        ['https://u:a\\b@h/s', undefined],
        ['https://one.test/simple https://u:a/b@h/s', undefined],
      ] as const)
        expect(cutOf(name, value), `${name} ${value}`).toBe(safe);
    expect(inheritedVariables({ PIP_INDEX_URL: 'https://u:a/b@h/s' })).toEqual({ variables: {}, cut: ['PIP_INDEX_URL'] });
    expect(cutOf('all_proxy', 'socks5://u:p@h:1080')).toBe('socks5://h:1080');
    expect(cutOf('PIP_EXTRA_INDEX_URL', 'https://u:p@a/s\n  https://b/s')).toBe('https://a/s\n  https://b/s');
    expect(cutOf('NO_PROXY', 'localhost,127.0.0.1,.corp')).toBe('localhost,127.0.0.1,.corp');
  });

  test('in other values everything before the last @ of a word is cut', () => {
    for (const [value, safe] of [
      ['https://aws:ab=cd@h/s', 'https://h/s'],
      ['https://u:a/b@h/s', 'https://h/s'],
      ['https://u:a,b@h/s', 'https://h/s'],
      ['one=https://u:a/b@h/s two=https://u:a?b@i/s?token=c', 'one=https://h/s two=https://i/s'],
      ['https://a/s,https://u:p,q@b/s', 'https://a/s,https://b/s'],
      ['u:a/b@h', 'h'],
      ['/opt/a@b', '/opt/a@b'],
      ['file:///opt/a@b', 'file:///opt/a@b'],
      ['./a@b ~/a@b', './a@b ~/a@b'],
    ] as const)
      for (const name of ['UV_INDEX', 'UV_DEFAULT_INDEX', 'UV_FIND_LINKS']) expect(cutOf(name, value), value).toBe(safe);
  });
});
