import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ControlPlane } from './control-plane.ts';

/** What the API server writes down: who of the service accounts asked for what, and its answer. */
const POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'Metadata', userGroups: ['system:serviceaccounts'] }],
};

/** Options of the API server; `folder`: of the control plane. */
export function auditOptions(folder: string): string[] {
  writeFileSync(path.join(folder, 'audit-policy.json'), JSON.stringify(POLICY));
  return ['--audit-policy-file=audit-policy.json', '--audit-log-path=audit.log'];
}

export interface AuditedRequest {
  /** As in a Role: `create pods/attach`. */
  right: string;
  /** HTTP status of the answer. */
  status: number;
  uri: string;
  /** Name of the pod whose token it was. */
  pod: string | null;
}

/** The requests of a service account, in the order of their answers. */
export function requestsOf(plane: ControlPlane, namespace: string, account: string): AuditedRequest[] {
  const lines = readFileSync(path.join(plane.folder, 'audit.log'), 'utf8').split('\n').filter(Boolean);
  return lines
    .map((line) => JSON.parse(line))
    .filter(({ user, stage }) => stage === 'ResponseComplete' && user.username === `system:serviceaccount:${namespace}:${account}`)
    .map(({ user, verb, objectRef, requestURI, responseStatus }) => ({
      right: `${verb} ${[objectRef?.resource, objectRef?.subresource].filter(Boolean).join('/')}`,
      status: responseStatus.code,
      uri: requestURI,
      pod: user.extra?.['authentication.kubernetes.io/pod-name']?.[0] ?? null,
    }));
}
