import { describe, expect, test } from 'vitest';
import { parseManifest } from './openenv-manifest.ts';

describe('openenv.yaml', () => {
  test('of the template is parsed', () => {
    const manifest = parseManifest('spec_version: 1\nname: my_env\ntype: space\nruntime: fastapi\napp: server.app:app\nport: 8123\n');
    expect(manifest).toMatchObject({ name: 'my_env', version: null, app: 'server.app:app', port: 8123, variables: {} });
  });

  test('of the older format, without a server, is parsed', () => {
    const source = 'name: coding_env\nversion: "0.1.0"\ndescription: "Runs code"\naction: CodeAction\nobservation: CodeObservation\n';
    expect(parseManifest(source)).toMatchObject({ name: 'coding_env', version: '0.1.0', description: 'Runs code', app: null, port: 8000 });
  });

  test('of the newest template keeps its unknown keys', () => {
    const source =
      'name: my_env\nversion: 1.0\nvariables: {DEPTH: 3, FAST: true}\nvalidation:\n  reward: {range: [0.0, 1.0]}\ndeclared_tools: [a]\n';
    const { version, variables, raw } = parseManifest(source);
    expect({ version, variables }).toEqual({ version: '1.0', variables: { DEPTH: '3', FAST: 'true' } });
    expect(raw).toMatchObject({ validation: { reward: { range: [0, 1] } }, declared_tools: ['a'] });
  });

  test.each([
    ['name: [', /^openenv\.yaml: .*line 1/],
    ['- a\n- b\n', /expected keys and values/],
    ['', /expected keys and values/],
    ['version: 1\n', /name: /],
    ['name: a\nport: 70000\n', /port: /],
    ['name: a\nname: b\n', /line 2/],
  ])('%j is refused', (source, message) => {
    expect(() => parseManifest(source)).toThrow(message);
  });
});
