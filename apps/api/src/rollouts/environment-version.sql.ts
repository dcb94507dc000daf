/**
 * The version of the environment of a rollout as text: of its session, else as uploaded (`rollout_info.env_version`); NULL if neither is known.
 * An upload may name any session. Only a session of the organisation of the upload counts. `seq` is SQL. Plan: rollout_meta_pkey, sessions_pkey,
 * rollout_heads_pkey, environment_versions_pkey; else rollout_starts_pkey.
 */
export const environmentVersion = (
  seq: string,
): string => `COALESCE((SELECT v.number::text FROM rollout_meta m JOIN sessions s ON s.sid = m.sid
        JOIN environment_versions v ON v.id = NULLIF(s.version_id, '')::uuid WHERE m.rollout_seq = ${seq}
          AND s.org_id = (SELECT h.org_id::text FROM rollout_heads h WHERE h.seq = m.rollout_seq)),
      (SELECT b.rollout_info->>'env_version' FROM rollout_starts b WHERE b.rollout_seq = ${seq}))`;
