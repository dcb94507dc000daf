import { expect, test } from 'vitest';
import { ConfigError, readConfig } from './config.ts';

const read = (env: Record<string, string>) => readConfig({ PALESTRA_HOSTING: 'kubernetes', ...env }, (path) => path).hosting.kubernetes;

test('pods of a release, or networks outside of the cluster, may connect to instances', () => {
  const pods = { PALESTRA_KUBERNETES_CALLER_PODS: 'app=palestra, tier=api', PALESTRA_KUBERNETES_CALLER_NAMESPACE: 'apps' };
  expect(read(pods).callers).toEqual({ pods: { namespace: 'apps', labels: { app: 'palestra', tier: 'api' } }, networks: [] });
  const networks = { PALESTRA_KUBERNETES_CALLER_NETWORKS: '10.1.0.0/16,10.2.0.7,fd00::7' };
  expect(read(networks)).toEqual({
    kubeconfig: null,
    namespace: null,
    callers: { pods: null, networks: ['10.1.0.0/16', '10.2.0.7/32', 'fd00::7/128'] },
    enforcesNetworkPolicy: false,
    runtimeClasses: {},
    nodeSelector: {},
    pullSecrets: [],
    builds: null,
    agentSandbox: true,
  });
});

test('folders are built where there is a registry', () => {
  const networks = { PALESTRA_KUBERNETES_CALLER_NETWORKS: '10.1.0.0/16' };
  const registry = { PALESTRA_KUBERNETES_REGISTRY: 'registry.example:5000/acme/palestra', PALESTRA_KUBERNETES_REGISTRY_SECRET: 'push' };
  expect(read({ ...networks, ...registry, PALESTRA_KUBERNETES_REGISTRY_NETWORKS: '10.3.0.1' }).builds).toEqual({
    registry: 'registry.example:5000/acme/palestra',
    registrySecret: 'push',
    registryNetworks: ['10.3.0.1/32'],
    builderImage: null,
  });
});

test.each([
  [{}, /PALESTRA_HOSTING: "kubernetes" needs to know who connects/],
  [{ PALESTRA_KUBERNETES_CALLER_PODS: 'app=palestra' }, /PALESTRA_KUBERNETES_CALLER_NAMESPACE/],
  [{ PALESTRA_KUBERNETES_CALLER_PODS: 'palestra' }, /PALESTRA_KUBERNETES_CALLER_PODS: .*"palestra" is not a label/],
  [{ PALESTRA_KUBERNETES_CALLER_NETWORKS: 'everywhere' }, /PALESTRA_KUBERNETES_CALLER_NETWORKS: must be networks/],
  [{ PALESTRA_KUBERNETES_NAMESPACE: 'Not A Name' }, /PALESTRA_KUBERNETES_NAMESPACE/],
  [{ PALESTRA_KUBERNETES_REGISTRY: 'https://registry.example/palestra' }, /PALESTRA_KUBERNETES_REGISTRY: must be a registry/],
])('%j is refused', (env, message) => {
  expect(() => read(env as Record<string, string>)).toThrow(ConfigError);
  expect(() => read(env as Record<string, string>)).toThrow(message);
});
