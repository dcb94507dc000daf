/** Entries of the audit log about environments. Addresses and commands can have secrets, so only the host is logged. */

export const auditedEnvironment = ({ id, owner, name }: { id?: string; owner?: string; name?: string }) => ({
  targetId: id ?? null,
  target: `${owner}/${name}`,
});

export const auditedSource = (source: { kind: string; url?: string } | undefined): Record<string, string | null> =>
  source === undefined ? {} : { source: source.kind, host: source.url === undefined ? null : new URL(source.url).host };

/** The names of the settings that a request changes; its body may be empty. */
export const auditedChanges = (body: object | undefined): string[] =>
  Object.keys(body ?? {}).filter((key) => /^(new_[a-z_]{1,40}|sessions)$/.test(key));
