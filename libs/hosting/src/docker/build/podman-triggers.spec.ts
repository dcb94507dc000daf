import { expect, test } from 'vitest';
import { isTriggering } from './podman-triggers.ts';

test('instructions of ONBUILD are found as Go reads them', () => {
  for (const config of [
    '{"config":{"OnBuild":["RUN x"]}}',
    '{"config":{"onbuild" :\n[ "RUN x"]}}',
    // All of the same name count, not only the last one.
    '{"config":{"OnBuild":["RUN x"],"config":{}}}',
    '{"config":{"OnBuild":["RUN x"]},"config":{"Env":[]}}',
    String.raw`{"config":{"\u004fnBuild":["RUN x"]}}`,
  ])
    expect(isTriggering(config), config).toBe(true);
  const said = JSON.stringify({
    config: { OnBuild: null, Labels: { a: '{"OnBuild":["RUN x"]}' } },
    history: [{ created_by: 'ONBUILD RUN x' }],
  });
  for (const config of ['{}', '{"config":{"OnBuild":null}}', '{"config":{"OnBuild":[ ]}}', said])
    expect(isTriggering(config), config).toBe(false);
});
