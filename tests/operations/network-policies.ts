import { BlockList } from 'node:net';
import type { Api } from '../k8s/support/api.ts';

export interface Policies {
  /**
   * Whether the policies let a pod of this namespace connect to a peer (`egress`), or a peer to it (`ingress`). `peer`: a pod, or an address
   * that is no pod's. A pod that no policy selects is free.
   */
  admits(direction: 'ingress' | 'egress', pod: any, peer: any, port: number): Promise<boolean>;
}

/** Network policies of a namespace, read as the documentation of Kubernetes says: the test cluster has no plugin that enforces them. */
export async function policiesOf(api: Api, namespace: string): Promise<Policies> {
  const { items } = await api.get(`/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`);
  return {
    async admits(direction, pod, peer, port) {
      const type = direction === 'egress' ? 'Egress' : 'Ingress';
      const mine = items.filter(({ spec }: any) => spec.policyTypes.includes(type) && matches(spec.podSelector, pod.metadata.labels));
      if (mine.length === 0) return true;
      const rules = mine.flatMap(({ spec }: any) => spec[direction] ?? []);
      // Ports are those of the pod that gets the connection.
      const receiver = direction === 'egress' ? peer : pod;
      for (const { from, to, ports } of rules) {
        const peers = direction === 'egress' ? to : from;
        if (ports !== undefined && !ports.some((one: any) => numberOf(one.port, receiver) === port)) continue;
        if (peers === undefined) return true;
        for (const one of peers) if (await isPeer(api, one, peer, namespace)) return true;
      }
      return false;
    },
  };
}

const matches = ({ matchLabels = {}, matchExpressions = [] }: any, labels: Record<string, string>): boolean =>
  Object.entries(matchLabels).every(([name, value]) => labels[name] === value) &&
  matchExpressions.every(({ key, operator, values }: any) => {
    if (operator !== 'In') throw new Error(`the test does not know the operator ${operator}`);
    return values.includes(labels[key]);
  });

const numberOf = (port: number | string, receiver: any): number | undefined =>
  typeof port === 'number'
    ? port
    : receiver.spec?.containers.flatMap(({ ports }: any) => ports ?? []).find(({ name }: any) => name === port)?.containerPort;

async function isPeer(api: Api, { ipBlock, namespaceSelector, podSelector }: any, peer: any, own: string): Promise<boolean> {
  // Plugins differ on blocks with addresses of pods.
  if (ipBlock !== undefined) return typeof peer === 'string' && isInBlock(ipBlock, peer);
  if (typeof peer === 'string') return false;
  const { namespace, labels } = peer.metadata;
  if (namespaceSelector === undefined ? namespace !== own : !matches(namespaceSelector, await labelsOf(api, namespace))) return false;
  return podSelector === undefined || matches(podSelector, labels);
}

function isInBlock({ cidr, except = [] }: { cidr: string; except?: string[] }, address: string): boolean {
  const isIn = (block: string): boolean => {
    const [network, bits] = block.split('/');
    const list = new BlockList();
    list.addSubnet(network!, Number(bits), network!.includes(':') ? 'ipv6' : 'ipv4');
    return list.check(address);
  };
  return isIn(cidr) && !except.some(isIn);
}

const labelsOf = async (api: Api, namespace: string) => (await api.get(`/api/v1/namespaces/${namespace}`)).metadata.labels;
