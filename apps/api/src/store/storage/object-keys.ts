/** Prefix of a rollout's objects: transcripts, images, large bodies. */
export function rolloutPrefix(orgId: string, rolloutId: string): string {
  return `orgs/${orgId}/rollouts/${rolloutId.slice(0, 2)}/${rolloutId}/`;
}

export function objectKey(orgId: string, rolloutId: string, name: string): string {
  return `${rolloutPrefix(orgId, rolloutId)}objects/${name}`;
}
