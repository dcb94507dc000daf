import type { KubernetesProvider } from '@palestra/hosting';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { soon } from '../integration/hosting/docker-instances.world.ts';
import { ControlPlane, kubeProgram } from './support/control-plane.ts';
import { documentedRules } from './support/documented-role.ts';
import { TestKubelet } from './support/kubelet.ts';
import { imageSpec, only, providerOf, removeAll } from './support/provider.world.ts';

const INSTALLATION = 'test-refusals';

/** Pods without containers: what the cluster says and refuses. */
describe.skipIf(kubeProgram === undefined)('a cluster that says no', () => {
  let plane: ControlPlane;
  let kubelet: TestKubelet;
  let namespace: string;
  let provider: KubernetesProvider;

  beforeAll(async () => {
    plane = await ControlPlane.start();
    // As a node that kills what needs too much, by the wish of the environment.
    kubelet = await TestKubelet.start({ plane, engine: null, fakeStatus: ({ spec }) => statuses[spec.containers[0]!.image] ?? null });
    namespace = await plane.namespace();
    provider = await withRules(documentedRules());
  });
  afterAll(async () => {
    await kubelet?.close();
    await plane?.stop();
  });

  let accounts = 0;
  async function withRules(rules: object[], options = {}): Promise<KubernetesProvider> {
    const token = await plane.account(namespace, `account-${(accounts += 1)}`, rules);
    return providerOf(plane.config(token, namespace), { installation: INSTALLATION, ...options });
  }

  test('without a Role, or with a wrong token, nothing is known, and the error says what to do', async () => {
    const stranger = await withRules([]);
    const refused = {
      code: 'engine_unavailable',
      message: expect.stringMatching(
        /pods is forbidden: User "system:serviceaccount:.*Give its service account the Role that docs\/hosting.md shows/,
      ),
    };
    await expect(stranger.list(soon())).rejects.toMatchObject(refused);
    await expect(stranger.ensure(imageSpec('any'), soon())).rejects.toMatchObject({ code: 'engine_unavailable' });
    await expect(providerOf(plane.config('wrong', namespace), { installation: INSTALLATION }).list(soon())).rejects.toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringContaining('does not accept the credentials'),
    });
  });

  test('what it can enforce is what the operator says, and nodes only where it may see them', async () => {
    expect(await provider.capabilities(soon())).toEqual({
      isolation: ['none', 'container'],
      egress: ['none', 'open'],
      gpus: false,
      limits: true,
      unlimited: ['pids'],
      maxMemoryMb: null,
      builds: false,
      perSession: false,
    });
    const options = { enforcesNetworkPolicy: false, runtimeClasses: { sandbox: 'gvisor' } };
    const admin = providerOf(plane.config(undefined, namespace), { installation: INSTALLATION, ...options });
    expect(await admin.capabilities(soon())).toMatchObject({
      isolation: ['none', 'container', 'sandbox'],
      egress: ['open'],
      maxMemoryMb: 65_536,
    });
    for (const given of [
      { egress: { kind: 'hosts', hosts: ['pypi.org'] } },
      { isolation: 'vm' },
      { artifact: { kind: 'urls', digest: '', urls: [] } },
    ] as const) {
      await expect(admin.ensure(imageSpec('any', given), soon())).rejects.toMatchObject({ code: 'hosting_unsupported' });
    }
  });

  test('pods have only the rights that a restricted namespace admits, and the network that their environment asked for', async () => {
    const { api } = plane;
    await api.merge(`/api/v1/namespaces/${namespace}`, { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } });
    const runtime = 'gvisor';
    await api.post('/apis/node.k8s.io/v1/runtimeclasses', { metadata: { name: runtime }, handler: 'runsc' });
    const strict = await withRules(documentedRules(), {
      runtimeClasses: { sandbox: runtime },
      placement: { nodeSelector: { 'palestra.test/runs': 'fake' }, pullSecrets: ['registry'] },
    });
    const spec = imageSpec('any', { isolation: 'sandbox', secrets: { KEY: 'value' }, egress: { kind: 'open' } });
    await strict.ensure(spec, soon());
    await expect.poll(async () => (await only(strict, spec.id))?.state).toBe('running');
    const pod = await api.get(`/api/v1/namespaces/${namespace}/pods/palestra-${spec.id}`);
    expect(pod.spec).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      restartPolicy: 'Never',
      runtimeClassName: runtime,
      nodeSelector: { 'palestra.test/runs': 'fake' },
      imagePullSecrets: [{ name: 'registry' }],
      securityContext: { runAsNonRoot: true, runAsUser: 65_534, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          resources: { limits: { cpu: '1', memory: '128Mi', 'ephemeral-storage': '88Mi' } },
          securityContext: {
            allowPrivilegeEscalation: false,
            privileged: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    });
    expect(pod.spec.volumes.map(({ name, emptyDir }: any) => [name, emptyDir?.sizeLimit])).toEqual([
      ['tmp', '8Mi'],
      ['var-tmp', '16Mi'],
      ['secrets', undefined],
    ]);
    const secret = await api.get(`/api/v1/namespaces/${namespace}/secrets/palestra-${spec.id}`);
    expect(secret).toMatchObject({
      immutable: true,
      data: { KEY: 'dmFsdWU=' },
      metadata: { ownerReferences: [{ uid: pod.metadata.uid }] },
    });
    const policies = `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies/palestra-${INSTALLATION}`;
    const open = await api.get(`${policies}-open`);
    for (const [name, value] of Object.entries(open.spec.podSelector.matchLabels)) expect(pod.metadata.labels[name]).toBe(value);
    expect(open.spec).toMatchObject({ policyTypes: ['Ingress', 'Egress'], ingress: [{ from: [{ ipBlock: { cidr: '10.88.0.1/32' } }] }] });
    expect(open.spec.egress[0].to[0].ipBlock.except).toEqual(
      expect.arrayContaining(['10.0.0.0/8', '168.63.129.16/32', '169.254.0.0/16', '192.168.0.0/16']),
    );
    const none = await api.get(`${policies}-none`);
    expect(none.spec.podSelector.matchLabels).toMatchObject({ 'palestra.dev/egress': 'none' });
    expect(none.spec.egress).toBeUndefined();
    expect(none.spec.policyTypes).toEqual(['Ingress', 'Egress']);
  });

  test('more than the quota of the namespace ends the instance with a reason', async () => {
    const other = await plane.namespace();
    await plane.api.post(`/api/v1/namespaces/${other}/resourcequotas`, { metadata: { name: 'small' }, spec: { hard: { pods: '0' } } });
    const token = await plane.account(other, 'palestra', documentedRules());
    const small = providerOf(plane.config(token, other), { installation: INSTALLATION });
    await expect
      .poll(() => small.ensure(imageSpec('any'), soon()).catch((error: unknown) => error))
      .toMatchObject({
        code: 'instance_failed',
        message: expect.stringMatching(/no room for the instance: .*exceeded quota.*Raise the ResourceQuota/),
      });
    expect(await small.list(soon())).toEqual([]);
  });

  test('ends that only a node knows are told in words', async () => {
    const specs = Object.keys(statuses).map((image) => imageSpec(image));
    for (const spec of specs) await provider.ensure(spec, soon());
    const reasons = async () => (await Promise.all(specs.map(({ id }) => only(provider, id)))).map((one) => one?.exit?.reason);
    await expect
      .poll(reasons)
      .toEqual([
        'The server used more than its 128 MB of memory and was killed (status 137).',
        'The node evicted the pod. Usage of EmptyDir volume "tmp" exceeds the limit "8Mi".',
        expect.stringMatching(/^The node cannot start the server \(CreateContainerConfigError: secret "x" not found\)/),
      ]);
  });

  test('while the API server is away nothing is known, and afterwards all is there', async () => {
    const spec = imageSpec('any');
    await provider.ensure(spec, soon());
    await expect.poll(async () => (await only(provider, spec.id))?.state).toBe('running');
    await plane.killServer();
    await expect(provider.list(soon())).rejects.toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    await expect(provider.ensure(imageSpec('any'), soon())).rejects.toMatchObject({ code: 'engine_unavailable' });
    await plane.startServer();
    expect(await only(provider, spec.id)).toMatchObject({ state: 'running' });
    const pods = async () => (await plane.api.get<{ items: any[] }>(`/api/v1/namespaces/${namespace}/pods`)).items;
    await removeAll({ provider: () => provider, pods });
  });
});

const terminated = (reason: string, exitCode: number) => ({
  name: 'server',
  image: 'x',
  imageID: '',
  state: { terminated: { reason, exitCode } },
});
const waiting = (reason: string, message: string) => ({ name: 'server', image: 'x', imageID: '', state: { waiting: { reason, message } } });
/** By the name of the image. */
const statuses: Record<string, object> = {
  'fails/memory': { phase: 'Failed', containerStatuses: [terminated('OOMKilled', 137)] },
  'fails/disk': { phase: 'Failed', reason: 'Evicted', message: 'Usage of EmptyDir volume "tmp" exceeds the limit "8Mi".' },
  'fails/start': { phase: 'Pending', containerStatuses: [waiting('CreateContainerConfigError', 'secret "x" not found')] },
};
