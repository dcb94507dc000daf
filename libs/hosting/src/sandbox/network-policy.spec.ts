import { describe, expect, test } from 'vitest';
import { NETWORK_PRESETS, type NetworkRule, rulesOf, unenforceable } from './network-policy.ts';

interface GatewayPolicy {
  matchesHost: (rule: string, host: string) => boolean;
  readPath: (raw: string) => string | null;
  matchesGlob: (pattern: string, text: string) => boolean;
  isPermitted: (rules: readonly NetworkRule[], request: { host: string; method: string | null; path: string | null }) => boolean;
}
// Its text goes into containers, so it is not TypeScript.
const file = new URL('../docker/instance/gateway-policy.mjs', import.meta.url);
const { isPermitted, matchesGlob, matchesHost, readPath } = (await import(file.href)) as GatewayPolicy;

const rule = (action: NetworkRule['action'], host: string, given: Partial<NetworkRule> = {}): NetworkRule => ({
  action,
  host,
  path: null,
  methods: null,
  ...given,
});
const get = (rules: NetworkRule[], host: string, path = '/', method = 'GET') => isPermitted(rules, { host, path, method });
const tunnel = (rules: NetworkRule[], host: string) => isPermitted(rules, { host, path: null, method: null });

describe('rules of a sandbox', () => {
  test('the first rule that matches decides, then the presets, and everything else is denied', () => {
    const rules = rulesOf([rule('deny', 'files.pythonhosted.org'), rule('allow', '*.example.org')], ['pypi']);
    expect(['pypi.org', 'files.pythonhosted.org', 'a.example.org', 'example.org', 'other.org'].map((host) => get(rules, host))).toEqual([
      true,
      false,
      true,
      false,
      false,
    ]);
    expect(tunnel(rules, 'pypi.org')).toBe(true);
    expect(NETWORK_PRESETS.flatMap((preset) => rulesOf([], [preset])).every(({ action }) => action === 'allow')).toBe(true);
  });

  test('hosts match without regard to case, and a star matches subdomains only', () => {
    expect(matchesHost('PyPI.org', 'pypi.ORG.')).toBe(true);
    expect(matchesHost('*.pypi.org', 'pypi.org')).toBe(false);
    expect(matchesHost('*.pypi.org', 'evilpypi.org')).toBe(false);
  });

  test('a star of a path matches slashes, and the whole path must match', () => {
    expect(matchesGlob('/datasets/*', '/datasets/a/b')).toBe(true);
    expect(matchesGlob('/a/*/c*d', '/a/b/c/x/d')).toBe(true);
    expect(matchesGlob('/a/*/a', '/a/a')).toBe(false);
    expect(matchesGlob('/a', '/a/b')).toBe(false);
    expect(matchesGlob('*'.repeat(30) + 'x', 'a'.repeat(10_000))).toBe(false);
  });

  test('a rule that denies a package denies all its spellings, a rule that allows one allows only this', () => {
    const denied = [rule('deny', 'pypi.org', { path: '/simple/my-package/*' }), rule('allow', 'pypi.org')];
    for (const name of ['my-package', 'My_Package', 'my.package', '!my-package', 'my%2Dpackage'])
      expect(get(denied, 'pypi.org', `/simple/${name}/`)).toBe(false);
    expect(get(denied, 'pypi.org', '/simple/other/')).toBe(true);
    const allowed = [rule('allow', 'pypi.org', { path: '/simple/my-package/*', methods: ['GET', 'HEAD'] })];
    expect(get(allowed, 'pypi.org', '/simple/my-package/')).toBe(true);
    expect(get(allowed, 'pypi.org', '/simple/my_package/')).toBe(false);
    expect(get(allowed, 'pypi.org', '/simple/my-package/', 'POST')).toBe(false);
  });

  test('paths that servers may read in several ways are denied', () => {
    for (const path of ['/a//b', '/a/../b', '/a/./b', '/a;b', '/%2e%2e/a', '/a%2f%2fb', '/a%', '/a\\b', '*'])
      expect(readPath(path)).toBeNull();
    expect(get([rule('allow', 'a.org')], 'a.org', '/a/../b')).toBe(false);
    expect(readPath('/a%20b')).toBe('/a b');
  });

  test('a tunnel hides path and method, so a rule on them closes the host, and the service refuses such rules', () => {
    const rules = [rule('allow', 'a.org', { path: '/x/*' }), rule('allow', 'a.org')];
    expect(tunnel(rules, 'a.org')).toBe(false);
    expect(unenforceable(rules, [])).toEqual([rules[0]]);
    expect(unenforceable(rules, ['A.org'])).toEqual([]);
    expect(unenforceable([rule('deny', 'b.org', { methods: ['POST'] })], ['a.org'])).toHaveLength(1);
  });
});
