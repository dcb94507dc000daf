import type { Artifact, DockerProvider } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { engineCommand, TestEngine } from './docker-engine.world.ts';
import { buildServer, call, linesUntil, removeAll, soon, specOf, startInstance } from './docker-instances.world.ts';

describe.skipIf(engineCommand === undefined)('containers after a crash', () => {
  let engine: TestEngine;
  let provider: DockerProvider;
  let artifact: Artifact;

  beforeAll(async () => {
    engine = await TestEngine.start();
    provider = engine.provider();
    artifact = await buildServer(engine, provider);
  });
  afterAll(() => engine?.close());
  afterEach(() => removeAll(engine, provider));

  const UNAVAILABLE = { name: 'HostingError', code: 'engine_unavailable' };

  test('an engine that is killed while a log is followed: said, and nothing is lost', async () => {
    const instance = await startInstance(provider, specOf(artifact));
    await call(instance, 'say', { text: 'before #', times: 3 });
    const read: { at: Date; text: string }[] = [];
    const following = (async () => {
      for await (const line of provider.logs(instance.id, null, soon())) read.push(line);
    })().catch((error: unknown) => error);
    await expect.poll(() => read.at(-1)?.text).toBe('before 2');
    await engine.kill();
    expect(await following).toMatchObject(UNAVAILABLE);
    const attempts = [provider.list(soon()), provider.ensure(specOf(artifact), soon()), provider.remove(instance.id, 0, soon())];
    await Promise.all(attempts.map((attempt) => expect(attempt).rejects.toMatchObject(UNAVAILABLE)));

    // The instance has not noticed.
    await call(instance, 'say', { text: 'meanwhile #', times: 3 });
    await engine.run();
    expect(await provider.list(soon())).toMatchObject([{ id: instance.id, state: 'running', endpoint: instance.endpoint }]);
    await call(instance, 'say', { text: 'after' });
    const rest = await linesUntil(provider.logs(instance.id, read.at(-1)!.at, soon()), 'after');
    expect(rest.map(({ text }) => text)).toEqual(['meanwhile 0', 'meanwhile 1', 'meanwhile 2', 'after']);
  });

  test('an engine that is killed while an instance starts: the next attempt finishes it', async () => {
    const spec = specOf(artifact, { secrets: { KEY: 'value' } });
    const starting = provider.ensure(spec, soon()).catch((error: unknown) => error);
    await expect.poll(() => engine.lines('ps', '-a', '--filter', `label=palestra.dev/instance=${spec.id}`, '-q').length).toBeGreaterThan(0);
    await engine.kill();
    expect(await starting).toMatchObject(UNAVAILABLE);
    await engine.run();
    expect((await provider.list(soon())).map(({ id }) => id)).toEqual([spec.id]);
    const instance = await startInstance(provider, spec);
    expect(await call(instance, 'read', { file: '/run/secrets/palestra/KEY' })).toBe('value');
  });

  // What a service that is killed leaves, at any moment: an aborted request is what remains of it for the engine.
  test('a service that is killed while an instance starts leaves what the next one finishes or removes', async () => {
    for (const afterMs of [50, 200, 350, 600]) {
      const spec = specOf(artifact, { id: newUuid(), secrets: { KEY: 'value' } });
      await provider.ensure(spec, AbortSignal.timeout(afterMs)).catch(() => null);
      const next = engine.provider();
      if (afterMs % 200 !== 0) {
        const instance = await startInstance(next, spec);
        expect(await call(instance, 'read', { file: '/run/secrets/palestra/KEY' })).toBe('value');
      }
      // Unwanted: the list has all that is left. The engine may still do what the killed service asked for, so it is removed as often as it is seen.
      const left = async () => {
        for (const { id } of await next.list(soon())) await next.remove(id, 0, soon());
        return engine.leftovers();
      };
      await expect.poll(left, { message: String(afterMs) }).toEqual([]);
    }
  });

  test('a gateway that ends is an end of the instance', async () => {
    const instance = await startInstance(provider, specOf(artifact));
    engine.ask('kill', `palestra-${instance.id}-gateway`);
    const found = async () => (await provider.list(soon()))[0];
    await expect.poll(async () => (await found())?.state).toBe('exited');
    expect(await found()).toMatchObject({ endpoint: null, exit: { code: null, reason: expect.stringContaining('gateway') } });
  });

  test('an engine that is not there, in words', async () => {
    const nowhere = engine.provider({ host: 'unix:///nowhere/docker.sock' });
    await expect(nowhere.list(soon())).rejects.toMatchObject({ ...UNAVAILABLE, message: expect.stringContaining('/nowhere/docker.sock') });
    const odd = engine.provider({ host: 'ftp://nowhere' });
    await expect(odd.list(soon())).rejects.toMatchObject({ ...UNAVAILABLE, message: expect.stringContaining('ftp://nowhere') });
    const none = engine.provider({ host: undefined, environment: { XDG_RUNTIME_DIR: '/nowhere', HOME: '/nowhere' } });
    await expect(none.capabilities(soon())).rejects.toMatchObject(UNAVAILABLE);
  });
});
