import { describe, expect, test } from 'vitest';
import { environmentOf, isNamed, searchTextOf } from './image.ts';

describe('the environment of an image', () => {
  test.each(['not JSON', '[]', '{"echo-env": 1}', 'null'])('is refused for the invalid mapping %s', (mapping) => {
    expect(() => environmentOf('echo-env', { PALESTRA_DOCKER_IMAGES: mapping })).toThrow('PALESTRA_DOCKER_IMAGES');
  });
  test.each(['', 'a b', 'x/', '-e K=V'])('is refused for the invalid image %j', (image) => {
    expect(() => environmentOf(image, {})).toThrow(`Invalid image "${image}"`);
  });
  test('comes from the mapping, in which - and _ are equivalent', () => {
    const env = { PALESTRA_OPENENV_OWNER: 'acme', PALESTRA_DOCKER_IMAGES: '{"openspiel_env": "other/Spiel", "atari-env:latest": "pong"}' };
    expect(environmentOf('openspiel-env:latest', env)).toEqual({ owner: 'other', name: 'Spiel' });
    expect(environmentOf('ghcr.io/x/atari_env@sha256:00', env)).toEqual({ owner: 'acme', name: 'pong' });
  });
  test('has the name of the image, and any owner without a setting', () => {
    expect(environmentOf('localhost:5000/sumo-rl-env:latest', {})).toEqual({ owner: null, name: 'sumo-rl-env' });
    expect(environmentOf('echo_env', { PALESTRA_OPENENV_OWNER: 'acme' })).toEqual({ owner: 'acme', name: 'echo_env' });
  });
  test.each([
    ['acme', 'sumo_rl-env', true],
    ['acme', 'SUMO-rl_env', true],
    ['acme', 'sumo-rl', false],
    ['acme', 'my-sumo-rl-env', false],
    ['other', 'sumo-rl-env', false],
  ])('of an owner is that owner’s: %s/%s', (owner, name, matches) => {
    expect(isNamed({ owner: 'acme', name: 'sumo-rl_env' }, { owner, name })).toBe(matches);
  });
  test('is found by a text without separators', () => {
    expect(searchTextOf({ owner: null, name: 'sumo-rl_env' })).toBe('sumo');
    expect(searchTextOf({ owner: null, name: 'bench' })).toBe('bench');
  });
});
