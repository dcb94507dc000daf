import type { KubernetesProvider } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { engineCommand } from '../integration/hosting/docker-engine.world.ts';
import { call, linesUntil, soon } from '../integration/hosting/docker-instances.world.ts';
import { installAgentSandbox, removeAgentSandbox } from './support/agent-sandbox-crds.ts';
import { kubeProgram, until } from './support/control-plane.ts';
import { agentSandboxRules, documentedRules } from './support/documented-role.ts';
import { FakeAgentSandboxController } from './support/fake-agent-sandbox-controller.ts';
import { imageSpec, only, type ProviderWorld, startProviderWorld } from './support/provider.world.ts';

/** A real API server, scheduler and garbage collector, our own definitions, and a FAKE of the controller of agent-sandbox. */
describe.skipIf(kubeProgram === undefined || engineCommand === undefined)(
  'pods per session of agent-sandbox, whose controller is a fake',
  () => {
    let world: ProviderWorld;
    let controller: FakeAgentSandboxController;
    let provider: KubernetesProvider;

    beforeAll(async () => {
      world = await startProviderWorld(installAgentSandbox, agentSandboxRules);
      controller = FakeAgentSandboxController.start(world.plane.api);
      provider = world.provider();
    });
    afterAll(async () => {
      await controller?.close();
      await world?.close();
    });
    /** As a service does that starts again and finds no rows. */
    afterEach(async () => {
      controller.paused = false;
      const next = world.provider();
      await Promise.all((await next.list(soon())).map(({ id }) => next.remove(id, 1_000, soon())));
      await Promise.all((await next.warmPools.list(soon())).map((versionId) => next.warmPools.remove(versionId, soon())));
      const left = async () => [
        ...(await world.pods()),
        ...(await world.secrets()),
        ...(await Promise.all(['sandboxtemplates', 'sandboxwarmpools', 'sandboxclaims'].map(objects))).flat(),
      ];
      await until('an empty namespace', async () => (await left()).length === 0);
    });

    const objects = async (kind: string) =>
      (await world.plane.api.get<{ items: any[] }>(`/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/${world.namespace}/${kind}`)).items;
    const specOf = (versionId: string, given = {}) => imageSpec(world.image, { versionId, single: true, ...given });
    const isWarm = (replicas: number) =>
      until(`a pool of ${replicas}`, async () => (await objects('sandboxwarmpools'))[0]?.status?.readyReplicas === replicas);
    const living = async () => (await world.pods()).filter(({ metadata }) => !metadata.deletionTimestamp);

    /** Starts an instance as the reconciler does; milliseconds until it answers. */
    async function startMs(spec: ReturnType<typeof specOf>): Promise<number> {
      const startedAt = performance.now();
      await provider.ensure(spec, soon());
      for (;;) {
        const instance = await only(provider, spec.id);
        if (instance?.endpoint && (await call(instance, 'echo', { is: 'up' }).catch(() => null)) !== null) break;
      }
      return performance.now() - startedAt;
    }

    test('a session gets a warm pod, which goes with it and is replaced', async () => {
      expect(await provider.capabilities(soon())).toMatchObject({ perSession: true });
      const versionId = newUuid();
      const cold = specOf(versionId, { secrets: { API_KEY: 'secret value' } });
      const coldMs = await startMs(cold);
      await provider.remove(cold.id, 1_000, soon());
      expect(await living()).toEqual([]);

      await provider.warmPools.keep(cold, 1, soon());
      await isWarm(1);
      const [first] = await living();
      // Nobody's instance yet.
      expect(await provider.list(soon())).toEqual([]);
      const spec = { ...cold, id: newUuid() };
      const warmMs = await startMs(spec);
      console.log(`cold ${Math.round(coldMs)} ms, warm ${Math.round(warmMs)} ms (fake controller)`);
      const instance = (await only(world.provider(), spec.id))!;
      expect(instance).toMatchObject({ versionId, state: 'running', endpoint: `http://${first.status.podIP}:8000` });
      expect(await call(instance, 'read', { file: '/run/secrets/palestra/API_KEY' })).toBe('secret value');
      expect(await call(instance, 'read', { file: '/var/run/secrets/kubernetes.io/serviceaccount/token' })).toBe('ENOENT');
      expect((await linesUntil(world.provider().logs(spec.id, null, soon()), 'listening')).at(-1)?.text).toBe('listening');
      await isWarm(1);

      // The same limits as a bare pod, and the labels by which our policies find it.
      const bare = { ...imageSpec(world.image, { versionId }), id: newUuid() };
      await provider.ensure(bare, soon());
      const [claimed, alone] = await Promise.all([first.metadata.name, `palestra-${bare.id}`].map((name) => podNamed(name)));
      for (const field of ['securityContext', 'automountServiceAccountToken', 'dnsPolicy', 'restartPolicy', 'enableServiceLinks'])
        expect(claimed.spec[field]).toEqual(alone.spec[field]);
      for (const field of ['resources', 'securityContext', 'image'])
        expect(claimed.spec.containers[0][field]).toEqual(alone.spec.containers[0][field]);
      const labels = { 'palestra.dev/installation': world.installation, 'palestra.dev/egress': 'none', 'palestra.dev/version': versionId };
      expect(claimed.metadata.labels).toMatchObject({ ...labels, 'sandbox.users.io/palestra-instance': spec.id });
      expect(claimed.metadata.annotations).toMatchObject({ 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' });
      await expect.poll(() => evict(first.metadata.name)).toBe(429);

      await provider.remove(spec.id, 1_000, soon());
      expect((await world.pods()).map(({ metadata }) => metadata.name)).not.toContain(first.metadata.name);
      await isWarm(1);
    });

    test('unused pods follow settings and secrets, and go when nothing is to be warm', async () => {
      const spec = specOf(newUuid(), { secrets: { API_KEY: 'old' } });
      await provider.warmPools.keep(spec, 2, soon());
      await isWarm(2);
      const before = (await living()).map(({ metadata }) => metadata.uid);
      const changed = { ...spec, variables: { GREETING: 'hello' }, secrets: { API_KEY: 'new' } };
      await provider.warmPools.keep(changed, 2, soon());
      await expect.poll(async () => (await living()).some(({ metadata }) => before.includes(metadata.uid))).toBe(false);
      await isWarm(2);
      await startMs(changed);
      const instance = (await only(provider, spec.id))!;
      expect(await call(instance, 'read', { file: '/run/secrets/palestra/API_KEY' })).toBe('new');
      expect(await call(instance, 'env')).toMatchObject({ GREETING: 'hello' });
      await provider.warmPools.keep(changed, 0, soon());
      await expect.poll(async () => (await living()).length).toBe(1);
    });

    test('a claim that is not answered and a pod that is gone are said', async () => {
      controller.paused = true;
      const spec = specOf(newUuid());
      expect(await provider.ensure(spec, soon())).toMatchObject({
        state: 'starting',
        waiting: expect.stringContaining('its controller runs'),
      });
      controller.paused = false;
      await startMs(spec);
      const [pod] = await living();
      await world.plane.api.delete(`/api/v1/namespaces/${world.namespace}/pods/${pod.metadata.name}`);
      await expect
        .poll(async () => (await only(provider, spec.id))!)
        .toMatchObject({ state: 'exited', exit: { reason: expect.stringContaining('gone') } });
      await world.plane.api.delete(`${poolsPath()}/palestra-v-${spec.versionId}`);
      const lost = specOf(spec.versionId);
      await provider.ensure(lost, soon());
      await expect.poll(async () => (await only(provider, lost.id))?.waiting).toMatch(/no pod for it yet \(WarmPoolNotFound\)/);
    });

    test('without rights or definitions instances are bare pods', async () => {
      const token = await world.plane.account(world.namespace, 'without', documentedRules());
      for (const other of [world.provider({}, token), world.provider({ agentSandbox: false })]) {
        expect(await other.capabilities(soon())).toMatchObject({ perSession: false });
        const spec = specOf(newUuid());
        await other.ensure(spec, soon());
        expect(await world.pod(spec.id)).toMatchObject({ metadata: { labels: { 'palestra.dev/role': 'server' } } });
        expect(await other.list(soon())).toMatchObject([{ id: spec.id }]);
        await other.warmPools.keep(spec, 1, soon());
        expect(await other.warmPools.list(soon())).toEqual([]);
        await other.remove(spec.id, 1_000, soon());
      }
      expect(await objects('sandboxtemplates')).toEqual([]);

      // Removed while the provider uses them, with all that there is.
      const before = specOf(newUuid());
      await startMs(before);
      controller.paused = true;
      await removeAgentSandbox(world.plane.api);
      expect(await provider.list(soon())).toEqual([]);
      const after = specOf(newUuid());
      await provider.ensure(after, soon());
      expect(await world.pod(after.id)).toMatchObject({ metadata: { labels: { 'palestra.dev/role': 'server' } } });
      await expect.poll(async () => (await only(provider, after.id))?.state).toBe('running');
      await provider.remove(after.id, 1_000, soon());
      await installAgentSandbox(world.plane.api);
    });

    const poolsPath = () => `/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/${world.namespace}/sandboxwarmpools`;
    const podNamed = (name: string) => world.plane.api.get(`/api/v1/namespaces/${world.namespace}/pods/${name}`);
    const evict = (name: string) =>
      world.plane.api
        .post(`/api/v1/namespaces/${world.namespace}/pods/${name}/eviction`, {
          apiVersion: 'policy/v1',
          kind: 'Eviction',
          metadata: { name, namespace: world.namespace },
        })
        .then(
          () => 201,
          ({ status }) => status,
        );
  },
);
