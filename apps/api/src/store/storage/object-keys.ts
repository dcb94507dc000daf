/** Prefix of an organisation's packs. Objects elsewhere are transcripts of single rollouts, from before packs. */
export const packPrefix = (orgId: string): string => `orgs/${orgId}/packs/`;

/** Prefix of a rollout's own objects: images, large bodies. */
export function rolloutPrefix(orgId: string, rolloutId: string): string {
  return `orgs/${orgId}/rollouts/${rolloutId.slice(0, 2)}/${rolloutId}/`;
}

export function objectKey(orgId: string, rolloutId: string, name: string): string {
  return `${rolloutPrefix(orgId, rolloutId)}objects/${name}`;
}
