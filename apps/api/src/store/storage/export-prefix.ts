/** Prefix of an export's objects. It is erased alone or with the exported rollouts. */
export const exportPrefix = (orgId: string, exportId: string): string => `exports/${orgId}/rollouts/${exportId}/`;
