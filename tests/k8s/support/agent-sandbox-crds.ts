import { type Api, isStatus } from './api.ts';
import { until } from './control-plane.ts';

const text = { type: 'string' };
const labels = { type: 'object', additionalProperties: text };
const metadata = { type: 'object', properties: { labels, annotations: labels } };
const podTemplate = {
  type: 'object',
  required: ['spec'],
  properties: { metadata, spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
};
const conditions = {
  type: 'array',
  items: {
    type: 'object',
    required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
    properties: { type: text, status: text, reason: text, message: text, lastTransitionTime: { ...text, format: 'date-time' } },
  },
};
const reference = { type: 'object', required: ['name'], properties: { name: text } };
const podIPs = { type: 'array', items: text };
const object = (properties: object, required: string[] = []) => ({ type: 'object', properties, required });

/** Definitions of our own, with the fields that the provider or the fake controller use: unknown fields would be dropped. */
const KINDS = [
  {
    group: 'agents.x-k8s.io',
    kind: 'Sandbox',
    plural: 'sandboxes',
    spec: object({ podTemplate, service: { type: 'boolean' } }, ['podTemplate']),
    status: object({ conditions, podIPs }),
  },
  {
    group: 'extensions.agents.x-k8s.io',
    kind: 'SandboxTemplate',
    plural: 'sandboxtemplates',
    spec: object(
      {
        podTemplate,
        service: { type: 'boolean' },
        networkPolicyManagement: { type: 'string', enum: ['Managed', 'Unmanaged'], default: 'Managed' },
        envVarsInjectionPolicy: { type: 'string', enum: ['Disallowed', 'Allowed', 'Overrides'], default: 'Disallowed' },
        volumeClaimTemplatesPolicy: { type: 'string', enum: ['Disallowed', 'Allowed', 'Overrides'], default: 'Disallowed' },
      },
      ['podTemplate'],
    ),
    status: object({}),
  },
  {
    group: 'extensions.agents.x-k8s.io',
    kind: 'SandboxWarmPool',
    plural: 'sandboxwarmpools',
    spec: object(
      {
        replicas: { type: 'integer', minimum: 0, default: 1 },
        sandboxTemplateRef: reference,
        updateStrategy: object({ type: { type: 'string', enum: ['Recreate', 'OnReplenish'], default: 'OnReplenish' } }),
      },
      ['sandboxTemplateRef'],
    ),
    status: object({ replicas: { type: 'integer' }, readyReplicas: { type: 'integer' } }),
  },
  {
    group: 'extensions.agents.x-k8s.io',
    kind: 'SandboxClaim',
    plural: 'sandboxclaims',
    spec: object({ warmPoolRef: reference, additionalPodMetadata: metadata }, ['warmPoolRef']),
    status: object({ conditions, sandbox: object({ name: text, podIPs }) }),
  },
];

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/** Resolves when the API server serves them. */
export async function installAgentSandbox(api: Api): Promise<void> {
  for (const { group, kind, plural, spec, status } of KINDS) {
    await api.apply(`${DEFINITIONS}/${plural}.${group}`, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.${group}` },
      spec: {
        group,
        scope: 'Namespaced',
        names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
        versions: [
          {
            name: 'v1beta1',
            served: true,
            storage: true,
            subresources: { status: {} },
            schema: { openAPIV3Schema: { type: 'object', properties: { spec, status } } },
          },
        ],
      },
    });
  }
  for (const { group, plural } of KINDS)
    await until(`the API of ${plural}`, async () => (await api.find(`/apis/${group}/v1beta1/${plural}`)) !== null);
}

/** Resolves when nothing of it is served. */
export async function removeAgentSandbox(api: Api): Promise<void> {
  for (const { group, plural } of KINDS)
    await api.delete(`${DEFINITIONS}/${plural}.${group}`).catch((error: unknown) => {
      if (!isStatus(error, 404)) throw error;
    });
  for (const { group, plural } of KINDS)
    await until(`the end of ${plural}`, async () => (await api.find(`/apis/${group}/v1beta1/${plural}`)) === null);
}
