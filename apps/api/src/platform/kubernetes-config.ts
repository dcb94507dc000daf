import { parseCidr } from '@palestra/outbound';
import { z } from 'zod';

/** The cluster that runs deployed environments. Null: what the kubeconfig, or the pod of this service, says. */
export interface KubernetesConfig {
  kubeconfig: string | null;
  namespace: string | null;
  /** Who may connect to instances: pods of the service, and CIDRs outside of the cluster. */
  callers: { pods: { namespace: string; labels: Record<string, string> } | null; networks: string[] };
  enforcesNetworkPolicy: boolean;
  runtimeClasses: { sandbox?: string; vm?: string };
  nodeSelector: Record<string, string>;
  pullSecrets: string[];
  /** Warm pools and pods per session of agent-sandbox are used where the cluster has them. */
  agentSandbox: boolean;
  /** Where folders are built; null: there is no registry. */
  builds: { registry: string; registrySecret: string | null; registryNetworks: string[]; builderImage: string | null } | null;
}

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
const NAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;
const name = z.string().regex(NAME, 'must be the name of an object of Kubernetes');
const networks = list
  .refine((cidrs) => cidrs.every((cidr) => parseCidr(cidr) !== null), 'must be networks by commas, as in 10.0.0.0/8')
  // Kubernetes wants the length of the prefix.
  .transform((cidrs) => cidrs.map((cidr) => (cidr.includes('/') ? cidr : `${cidr}/${cidr.includes(':') ? 128 : 32}`)));

/** Host of a registry, and at least one part of a path: lower case, as registries want it. */
const REPOSITORY = /^[a-z0-9.-]+(?::\d{1,5})?(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+$/;

/** `name=value` by commas. */
const labels = list.transform((items, context): Record<string, string> => {
  const wrong = items.find((item) => !/^[\w./-]+=[\w.-]*$/.test(item));
  if (wrong === undefined) return Object.fromEntries(items.map((item) => item.split('=') as [string, string]));
  context.addIssue(`must be labels by commas, as in pool=environments; ${JSON.stringify(wrong)} is not a label`);
  return z.NEVER;
});

/** Variables of the engine `kubernetes`. */
export const kubernetesSchema = {
  KUBECONFIG: z.string().optional(),
  PALESTRA_KUBERNETES_NAMESPACE: name.optional(),
  PALESTRA_KUBERNETES_CALLER_PODS: labels.optional(),
  PALESTRA_KUBERNETES_CALLER_NAMESPACE: name.optional(),
  PALESTRA_KUBERNETES_CALLER_NETWORKS: networks.default([]),
  PALESTRA_KUBERNETES_NETWORK_POLICY: z.enum(['0', '1']).default('0'),
  PALESTRA_KUBERNETES_RUNTIME_CLASS_SANDBOX: name.optional(),
  PALESTRA_KUBERNETES_RUNTIME_CLASS_VM: name.optional(),
  PALESTRA_KUBERNETES_NODE_SELECTOR: labels.default({}),
  PALESTRA_KUBERNETES_PULL_SECRETS: list.pipe(z.array(name)).default([]),
  PALESTRA_KUBERNETES_AGENT_SANDBOX: z.enum(['0', '1']).default('1'),
  PALESTRA_KUBERNETES_REGISTRY: z
    .string()
    .regex(REPOSITORY, 'must be a registry and a prefix of repositories, as in registry.example/palestra')
    .optional(),
  PALESTRA_KUBERNETES_REGISTRY_SECRET: name.optional(),
  PALESTRA_KUBERNETES_REGISTRY_NETWORKS: networks.default([]),
  PALESTRA_KUBERNETES_BUILDER_IMAGE: z.string().min(1).optional(),
};

type Values = z.output<z.ZodObject<typeof kubernetesSchema>>;

/** Why a service that runs instances could not reach them: network policies let nobody in whom the operator has not named. */
export function kubernetesProblem(value: Values): string | null {
  const { callers } = readKubernetes(value);
  if (callers.pods !== null || callers.networks.length > 0) return null;
  return '"kubernetes" needs to know who connects to instances: set PALESTRA_KUBERNETES_CALLER_PODS and PALESTRA_KUBERNETES_CALLER_NAMESPACE, or PALESTRA_KUBERNETES_CALLER_NETWORKS';
}

export function readKubernetes(value: Values): KubernetesConfig {
  const { PALESTRA_KUBERNETES_RUNTIME_CLASS_SANDBOX: sandbox, PALESTRA_KUBERNETES_RUNTIME_CLASS_VM: vm } = value;
  const { PALESTRA_KUBERNETES_CALLER_PODS: pods, PALESTRA_KUBERNETES_CALLER_NAMESPACE: namespace } = value;
  return {
    kubeconfig: value.KUBECONFIG ?? null,
    namespace: value.PALESTRA_KUBERNETES_NAMESPACE ?? null,
    callers: {
      pods: pods === undefined || namespace === undefined ? null : { namespace, labels: pods },
      networks: value.PALESTRA_KUBERNETES_CALLER_NETWORKS,
    },
    enforcesNetworkPolicy: value.PALESTRA_KUBERNETES_NETWORK_POLICY === '1',
    runtimeClasses: { ...(sandbox !== undefined && { sandbox }), ...(vm !== undefined && { vm }) },
    nodeSelector: value.PALESTRA_KUBERNETES_NODE_SELECTOR,
    pullSecrets: value.PALESTRA_KUBERNETES_PULL_SECRETS,
    agentSandbox: value.PALESTRA_KUBERNETES_AGENT_SANDBOX === '1',
    builds: readBuilds(value),
  };
}

function readBuilds(value: Values): KubernetesConfig['builds'] {
  const { PALESTRA_KUBERNETES_REGISTRY: registry } = value;
  if (registry === undefined) return null;
  return {
    registry,
    registrySecret: value.PALESTRA_KUBERNETES_REGISTRY_SECRET ?? null,
    registryNetworks: value.PALESTRA_KUBERNETES_REGISTRY_NETWORKS,
    builderImage: value.PALESTRA_KUBERNETES_BUILDER_IMAGE ?? null,
  };
}
