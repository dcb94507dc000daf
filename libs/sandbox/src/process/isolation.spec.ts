import { describe, expect, test } from 'vitest';
import type { Level } from './command.ts';
import { detectIsolation, readIsolationSettings, type Sandbox } from './isolation.ts';

const local = { forced: undefined, isExposed: false, allowWeak: false };
/** A machine that offers these levels. */
const machine =
  (...levels: Level[]) =>
  async ({ level }: Sandbox) => {
    if (!levels.includes(level)) throw new Error(`no ${level} here`);
  };

describe('the level', () => {
  test('is the strongest that the machine supports', async () => {
    expect(await detectIsolation(local, machine('namespace', 'process'))).toEqual({
      level: 'namespace',
      refusal: null,
      summary: 'Isolation: namespace.',
    });
    expect(await detectIsolation(local, machine('process'))).toEqual({
      level: 'process',
      refusal: null,
      summary: 'Isolation: process; level "namespace" does not work here: no namespace here.',
    });
  });

  test('is a container if the operator sets an image, or the next level if that fails', async () => {
    const withImage = { ...local, container: { image: 'node:20-slim' } };
    expect(await detectIsolation(local, machine('container', 'namespace'))).toMatchObject({ level: 'namespace' });
    expect(await detectIsolation(withImage, machine('container', 'namespace'))).toMatchObject({
      level: 'container',
      container: withImage.container,
    });
    const { level, summary } = await detectIsolation(withImage, machine('namespace'));
    expect(level).toBe('namespace');
    expect(summary).toContain('level "container" does not work here: no container here');
  });

  test('is the one that the operator sets, or none', async () => {
    expect(await detectIsolation({ ...local, forced: 'process' }, machine('namespace', 'process'))).toMatchObject({ level: 'process' });
    const { level, refusal, summary } = await detectIsolation({ ...local, forced: 'namespace' }, machine('process'));
    expect(level).toBeNull();
    expect(refusal).toMatch(/no namespace here.*Install bubblewrap/);
    expect(summary).toContain('Isolation: none');
  });

  test('"process" is refused for an exposed service unless the operator accepts it', async () => {
    const exposed = { ...local, isExposed: true };
    expect(await detectIsolation(exposed, machine('namespace'))).toMatchObject({ refusal: null });
    const refused = await detectIsolation(exposed, machine('process'));
    expect(refused.refusal).toMatch(/non-loopback.*Install bubblewrap.*PALESTRA_WEAK_ISOLATION=1/);
    expect(refused.summary).toContain('Sessions are refused');
    const accepted = await detectIsolation({ ...exposed, allowWeak: true }, machine('process'));
    expect(accepted).toMatchObject({ level: 'process', refusal: null, summary: expect.stringContaining('Warning') });
  });
});

describe('the settings', () => {
  test.each([
    ['127.0.0.1', false],
    ['127.8.0.1', false],
    ['::1', false],
    ['localhost', false],
    [undefined, false],
    ['0.0.0.0', true],
    ['::', true],
    ['10.0.0.1', true],
    ['127.0.0.1.example.com', true],
    ['palestra', true],
  ])('HOST %s: exposed is %s', (host, isExposed) => {
    expect(readIsolationSettings({ HOST: host })).toEqual({ forced: undefined, isExposed, allowWeak: false });
  });

  test('name the image of containers', () => {
    const named = readIsolationSettings({ PALESTRA_SANDBOX_IMAGE: 'node:20-slim', PALESTRA_CONTAINER_ENGINE: 'podman' });
    expect(named.container).toEqual({ image: 'node:20-slim', engine: 'podman' });
    expect(readIsolationSettings({ PALESTRA_CONTAINER_ENGINE: 'podman' }).container).toBeUndefined();
  });

  test('name a level that exists', () => {
    expect(readIsolationSettings({ PALESTRA_ISOLATION: 'process', PALESTRA_WEAK_ISOLATION: '1' })).toEqual({
      forced: 'process',
      isExposed: false,
      allowWeak: true,
    });
    expect(() => readIsolationSettings({ PALESTRA_ISOLATION: 'none' })).toThrow('none is not one of container, namespace, process');
  });
});
