import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type BuildRequest, detectPlan } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import type { TestEngine } from '../../integration/hosting/docker-engine.world.ts';
import { LIMITS, soon } from '../../integration/hosting/docker-instances.world.ts';
import { buildImage } from './provider.world.ts';

const ENVIRONMENT = `
import { defineEnvironment, tool, z } from '@palestra/environment-kit';
console.log('version VERSION starts');
export default defineEnvironment({
  name: 'guess',
  splits: ['train'],
  tasks: () => [{ secret: 7 }],
  prompt: () => 'Guess.',
  tools: { guess: tool({ description: 'Guess.', input: z.object({ number: z.int() }), run: () => ({ content: 'version VERSION', reward: 1 }) }) },
});
`;

/** Images in which the kit serves two versions of the environment `guess`, at port 8000. */
export async function buildGuessImages(engine: TestEngine): Promise<[string, string]> {
  const folder = path.join(engine.folder, newUuid());
  mkdirSync(folder);
  writeFileSync(path.join(folder, 'environment.ts'), ENVIRONMENT.replaceAll('VERSION', '1'));
  const { plan } = await detectPlan(folder);
  const request: BuildRequest = {
    deployId: newUuid(),
    sourceDigest: `sha256:${newUuid()}`,
    source: { kind: 'folder', folder, plan },
    buildArguments: {},
    limits: LIMITS,
  };
  const artifact = await engine.provider().build(request, () => {}, soon());
  const first = `localhost/palestra-test/guess-${process.pid}:1`;
  engine.ask('tag', (artifact as { image: string }).image.replace('sha256:', ''), first);
  const second = buildImage(engine, 'guess-2', `FROM ${first}\nCOPY environment.ts /app/environment.ts\n`, {
    'environment.ts': ENVIRONMENT.replaceAll('VERSION', '2'),
  });
  return [first, second];
}
