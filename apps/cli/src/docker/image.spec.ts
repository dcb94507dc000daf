import { describe, expect, test } from 'vitest';
import { environmentsOf } from './image.ts';

describe('the environment of an image', () => {
  test.each(['not JSON', '[]', '{"echo-env": 1}', 'null'])('is refused for the invalid mapping %s', (mapping) => {
    expect(() => environmentsOf('echo-env', { PALESTRA_DOCKER_IMAGES: mapping })).toThrow('PALESTRA_DOCKER_IMAGES');
  });
  test.each(['', 'a b', 'x/', '-e K=V'])('is refused for the invalid image %j', (image) => {
    expect(() => environmentsOf(image, {})).toThrow(`Invalid image "${image}"`);
  });
  test('comes from the mapping, in which - and _ are equivalent', () => {
    const env = { PALESTRA_OPENENV_OWNER: 'acme', PALESTRA_DOCKER_IMAGES: '{"openspiel_env": "other/Spiel", "atari-env:latest": "pong"}' };
    expect(environmentsOf('openspiel-env:latest', env)).toEqual(['other/Spiel']);
    expect(environmentsOf('ghcr.io/x/atari_env@sha256:00', env)).toEqual(['acme/pong']);
  });
  test('has the name of the image, with - and _ in every combination', () => {
    expect(environmentsOf('echo_env:latest', {})).toEqual(['palestra/echo_env', 'palestra/echo-env']);
    expect(environmentsOf('sumo-rl-env', { PALESTRA_OPENENV_OWNER: 'acme' })).toEqual([
      'acme/sumo-rl-env',
      'acme/sumo_rl_env',
      'acme/sumo-rl_env',
      'acme/sumo_rl-env',
    ]);
    expect(environmentsOf('a-b-c-d-e', {})).toEqual(['palestra/a-b-c-d-e', 'palestra/a_b_c_d_e']);
    expect(environmentsOf('localhost:5000/bench', {})).toEqual(['palestra/bench']);
  });
});
