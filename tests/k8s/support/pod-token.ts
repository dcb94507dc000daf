import type { Api } from './api.ts';
import type { FileSource, Pod } from './pod.ts';

/** A token of the service account of a pod, which is valid while the pod exists. */
export async function tokenOf(api: Api, pod: Pod, source: NonNullable<FileSource['serviceAccountToken']>): Promise<string> {
  const { audience, expirationSeconds = 3_600 } = source;
  const { name, namespace, uid } = pod.metadata;
  const account = pod.spec.serviceAccountName ?? 'default';
  const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name, uid };
  const spec = { expirationSeconds, boundObjectRef, ...(audience !== undefined && { audiences: [audience] }) };
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
  return (await api.post(`/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`, request)).status.token;
}
