/** Objects of an export are below this; erased as a prefix, by itself or with the rollouts that are in it. */
export const exportPrefix = (orgId: string, exportId: string): string => `exports/${orgId}/rollouts/${exportId}/`;
