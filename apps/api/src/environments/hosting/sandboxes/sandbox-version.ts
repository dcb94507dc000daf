/**
 * The version to which sandboxes of an environment's version are pinned. It is another UUID, so that a sandbox takes no slot and no instance of
 * the environment: the digit of the UUID's own version, of which RFC 9562 uses 1 to 8, has its highest bit changed. The same again gives the
 * first one.
 */
export const swapSandboxVersion = (versionId: string): string =>
  versionId.slice(0, VERSION_DIGIT) +
  (Number.parseInt(versionId[VERSION_DIGIT]!, 16) ^ 8).toString(16) +
  versionId.slice(VERSION_DIGIT + 1);

const VERSION_DIGIT = 14;

export const isSandboxVersion = (versionId: string): boolean => /^[0-9a-f]{8}-[0-9a-f]{4}-[09a-f]/.test(versionId);
