import type { V1PodDisruptionBudget } from '@kubernetes/client-node';
import { PROXY_PORT } from '../../docker/instance/gateway.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { LABEL, names, type PolicyKind } from '../cluster/names.ts';

/** Who may connect to instances: pods of this service by their labels and namespace, and addresses outside of the cluster (CIDRs). */
export interface Callers {
  pods: { namespace: string; labels: Readonly<Record<string, string>> } | null;
  networks: readonly string[];
}

interface GuardsOptions {
  cluster: Cluster;
  installation: string;
  callers: Callers;
  /** Of the registry, where it has no public address (CIDRs). */
  registryNetworks: readonly string[];
  /** Gateways of sandboxes connect to private addresses too: their program knows which. Default: false. */
  gatewaysReachAll?: boolean;
}

/**
 * Addresses that are not public: private, shared, loopback, link-local with the metadata of clouds, multicast, reserved (RFC 6890); and the
 * public address of Azure's metadata.
 */
const PRIVATE_V4 =
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24' +
  ' 168.63.129.16/32 192.168.0.0/16 198.18.0.0/15 224.0.0.0/4 240.0.0.0/4';
const PRIVATE_V6 = ['::/96', '64:ff9b::/96', '64:ff9b:1::/48', 'fc00::/7', 'fe80::/10', 'ff00::/8'];
const KINDS: readonly PolicyKind[] = ['none', 'open', 'build', 'gateway'];
/** Somebody may delete them. */
const FRESH_MS = 60_000;

/**
 * Objects of the whole installation that exist before its first pod: a network policy for each kind of egress, and a disruption budget that
 * lets nobody evict an instance or a sandbox, because its sessions would be lost.
 */
export class Guards {
  readonly #options: GuardsOptions;
  #appliedAt = Number.NEGATIVE_INFINITY;

  constructor(options: GuardsOptions) {
    this.#options = options;
  }

  async apply(signal: AbortSignal): Promise<void> {
    if (performance.now() - this.#appliedAt < FRESH_MS) return;
    const { cluster, installation } = this.#options;
    const { namespace } = cluster;
    const policies = `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`;
    for (const kind of KINDS) {
      const policy = networkPolicy(kind, this.#options);
      await cluster.apply(`${policies}/${policy.metadata.name}`, policy, signal);
    }
    const budget = disruptionBudget(installation);
    await cluster.apply(`/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/${budget.metadata!.name}`, budget, signal);
    this.#appliedAt = performance.now();
  }
}

/**
 * The object as JSON, because the client library's class has other names for some fields. Instances get connections from this service alone,
 * builds get none, gateways those of sandboxes. `open`: they reach public addresses and the name server of the cluster. `build`: the registry too.
 */
export function networkPolicy(
  kind: PolicyKind,
  { installation, callers: { pods, networks }, registryNetworks, gatewaysReachAll = false }: Omit<GuardsOptions, 'cluster'>,
) {
  const labels = { [LABEL.installation]: installation, [LABEL.egress]: kind };
  const from: object[] = networks.map((cidr) => ({ ipBlock: { cidr } }));
  if (pods) from.push({ ...namespaceOf(pods.namespace), podSelector: { matchLabels: pods.labels } });
  const dns = [
    { protocol: 'UDP', port: 53 },
    { protocol: 'TCP', port: 53 },
  ];
  const open: object[] = [
    { to: [{ ipBlock: { cidr: '0.0.0.0/0', except: PRIVATE_V4.split(' ') } }, { ipBlock: { cidr: '::/0', except: PRIVATE_V6 } }] },
    { to: [{ ...namespaceOf('kube-system'), podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } } }], ports: dns },
  ];
  const registry = registryNetworks.map((cidr) => ({ ipBlock: { cidr } }));
  // An empty list of peers would mean everybody.
  const build = registry.length === 0 ? open : [...open, { to: registry }];
  const egress = { none: [], open, build, gateway: gatewaysReachAll ? [{}] : open }[kind];
  const fromSandboxes = {
    from: [{ podSelector: { matchLabels: { [LABEL.installation]: installation, [LABEL.role]: 'sandbox' } } }],
    ports: [{ protocol: 'TCP', port: PROXY_PORT }],
  };
  const fromCallers = from.length === 0 ? [] : [{ from }];
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: names.policy(installation, kind), labels },
    spec: {
      podSelector: { matchLabels: labels },
      policyTypes: ['Ingress', 'Egress'],
      ingress: { none: fromCallers, open: fromCallers, build: [], gateway: [fromSandboxes] }[kind],
      egress,
    },
  };
}

const namespaceOf = (name: string) => ({ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } } });

function disruptionBudget(installation: string): V1PodDisruptionBudget {
  const labels = { [LABEL.installation]: installation };
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: names.policy(installation, 'instances'), labels },
    spec: {
      selector: { matchLabels: labels, matchExpressions: [{ key: LABEL.role, operator: 'In', values: ['server', 'sandbox', 'gateway'] }] },
      maxUnavailable: 0,
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
    },
  };
}
