import { expect, test } from 'vitest';
import { buildJob } from './build-job.ts';

const LIMITS = { seconds: 1_800, memoryMb: 4_096, maxBytes: 16 * 2 ** 30, network: true };
const placement = { nodeSelector: { pool: 'environments' }, pullSecrets: ['pull'] };
const options = { installation: 'here', placement, builderImage: 'builder:1', registrySecret: null };
const input = {
  request: { deployId: 'deploy-1', buildArguments: { A: '$(B)' }, limits: LIMITS },
  size: 10_240,
  image: 'registry.example/acme:build-1',
  cache: 'registry.example/acme:cache-1',
};

test('one attempt with a deadline, which the cluster removes by itself', () => {
  const { metadata, spec } = buildJob(input, options);
  const labels = {
    'palestra.dev/installation': 'here',
    'palestra.dev/role': 'build',
    'palestra.dev/egress': 'build',
    'palestra.dev/deploy': 'deploy-1',
  };
  expect(metadata).toEqual({ name: 'palestra-build-deploy-1', labels });
  expect(spec).toMatchObject({ backoffLimit: 0, activeDeadlineSeconds: 1_800, ttlSecondsAfterFinished: 600 });
  expect(spec!.template.metadata!.labels).toEqual(labels);
});

test('its pod has no rights, limits, and only the freedom that BuildKit needs without root', () => {
  const { template } = buildJob(input, options).spec!;
  const [context, build] = [template.spec!.initContainers![0]!, template.spec!.containers[0]!];
  expect(template.spec).toMatchObject({
    automountServiceAccountToken: false,
    hostNetwork: false,
    hostPID: false,
    restartPolicy: 'Never',
    nodeSelector: { pool: 'environments' },
    imagePullSecrets: [{ name: 'pull' }],
    securityContext: { runAsNonRoot: true, runAsUser: 1_000, runAsGroup: 1_000 },
  });
  const limits = { cpu: '2', memory: '4096Mi', 'ephemeral-storage': '16384Mi' };
  expect(build.resources).toEqual({ limits, requests: { ...limits, 'ephemeral-storage': '1Gi' } });
  expect(build.securityContext).toEqual({
    privileged: false,
    runAsNonRoot: true,
    seccompProfile: { type: 'Unconfined' },
    appArmorProfile: { type: 'Unconfined' },
  });
  expect(context).toMatchObject({ stdin: true, stdinOnce: true, securityContext: { allowPrivilegeEscalation: false } });
  expect(context.command!.at(-1)).toContain('head -c 10240 |');
});

test('what it builds: the Dockerfile of the context, with its arguments as they are, to the registry', () => {
  const [build] = buildJob(input, options).spec!.template.spec!.containers;
  expect(build!.args).toEqual([
    'build',
    '--progress=plain',
    '--frontend=dockerfile.v0',
    '--local=context=/context',
    '--local=dockerfile=/context',
    '--opt=filename=.palestra.Dockerfile',
    // The cluster makes it $(B) again.
    '--opt=build-arg:A=$$(B)',
    '--output=type=image,name=registry.example/acme:build-1,push=true',
    '--import-cache=type=registry,ref=registry.example/acme:cache-1',
    '--export-cache=type=registry,ref=registry.example/acme:cache-1,ignore-error=true',
  ]);
  expect(build!.env).toContainEqual({ name: 'BUILDKITD_FLAGS', value: '--oci-worker-no-process-sandbox' });
  const closed = buildJob({ ...input, cache: null, request: { ...input.request, limits: { ...LIMITS, network: false } } }, options);
  const said = closed.spec!.template.spec!.containers[0]!.args!;
  expect(said).toContain('--opt=force-network-mode=none');
  expect(said.join(' ')).not.toContain('cache');
});

test('the credentials of the registry are files of the builder alone', () => {
  const { spec } = buildJob(input, { ...options, registrySecret: 'push' }).spec!.template;
  expect(spec!.containers[0]!.volumeMounts).toContainEqual({ name: 'registry', mountPath: '/registry', readOnly: true });
  expect(spec!.initContainers![0]!.volumeMounts!.map(({ name }) => name)).toEqual(['context']);
  expect(spec!.volumes!.at(-1)!.secret).toMatchObject({
    secretName: 'push',
    items: [{ key: '.dockerconfigjson', path: 'config.json' }],
  });
});
