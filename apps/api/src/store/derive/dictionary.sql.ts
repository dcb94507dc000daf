import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import type { JsonObject } from '@palestra/protocol';

/** Rows of rollouts refer to environments, tasks and sets of rules by small integer ids. */

export interface EnvironmentName {
  orgId: string;
  environment: string | null;
  variant: string | null;
}
export interface TaskName {
  orgId: string;
  envId: number;
  /** The key that the normaliser computed. */
  key: string;
  split: string | null;
  taskIndex: number | null;
}

const MAX_CACHED = 100_000;
const hashOf = (...parts: unknown[]) => createHash('sha256').update(JSON.stringify(parts)).digest('hex');

/**
 * Returns ids of environments and inserts the missing ones. A name links only to a hosted environment that the organisation may see: its
 * own and public ones. Plan: rollout_environments_org_id_name_hash_key; environments by (owner, name) or name.
 */
const ENVIRONMENTS = `
WITH name AS (SELECT * FROM jsonb_to_recordset($1::jsonb) AS n(org_id uuid, hash text, environment text, variant text)),
created AS (
  INSERT INTO rollout_environments (org_id, name_hash, environment, variant, environment_id)
  SELECT n.org_id, decode(n.hash, 'hex'), n.environment, n.variant, (
    SELECT e.id FROM environments e WHERE (e.owner || '/' || e.name = n.environment OR e.name = n.environment) AND (NOT e.is_private OR e.org_id = n.org_id)
    ORDER BY e.owner || '/' || e.name = n.environment DESC, e.org_id = n.org_id DESC NULLS LAST LIMIT 1)
  FROM name n ORDER BY n.org_id, n.hash ON CONFLICT (org_id, name_hash) DO NOTHING RETURNING id, org_id, name_hash)
SELECT id, org_id::text || encode(name_hash, 'hex') AS key FROM created
UNION SELECT e.id, e.org_id::text || n.hash FROM rollout_environments e JOIN name n ON e.org_id = n.org_id AND e.name_hash = decode(n.hash, 'hex')`;

/** Returns ids of tasks and inserts the missing ones. Plan: rollout_tasks_org_id_key_hash_key. */
const TASKS = `
WITH name AS (SELECT * FROM jsonb_to_recordset($1::jsonb) AS n(org_id uuid, hash text, key text, env_id int, split text, task_index int)),
created AS (
  INSERT INTO rollout_tasks (org_id, key_hash, key, env_id, split, task_index)
  SELECT org_id, decode(hash, 'hex'), left(key, 512), env_id, split, task_index FROM name ORDER BY org_id, hash
  ON CONFLICT (org_id, key_hash) DO NOTHING RETURNING id, org_id, key_hash)
SELECT id, org_id::text || encode(key_hash, 'hex') AS key FROM created
UNION SELECT t.id, t.org_id::text || n.hash FROM rollout_tasks t JOIN name n ON t.org_id = n.org_id AND t.key_hash = decode(n.hash, 'hex')`;

/** Returns ids of sets of rules and inserts the missing ones. Plan: rollout_rules_hash_key. */
const RULES = `
WITH name AS (SELECT * FROM jsonb_to_recordset($1::jsonb) AS n(hash text, rules jsonb)),
created AS (
  INSERT INTO rollout_rules (hash, rules) SELECT decode(hash, 'hex'), rules FROM name ORDER BY hash ON CONFLICT (hash) DO NOTHING RETURNING id, hash)
SELECT id, encode(hash, 'hex') AS key FROM created
UNION SELECT r.id, n.hash FROM rollout_rules r JOIN name n ON r.hash = decode(n.hash, 'hex')`;

/** Resolves names to ids and caches them; ids never change. */
export class Dictionary {
  readonly #environments = new LRUCache<string, number>({ max: MAX_CACHED });
  readonly #tasks = new LRUCache<string, number>({ max: MAX_CACHED });
  readonly #rules = new LRUCache<string, number>({ max: MAX_CACHED });

  constructor(private readonly pool: pg.Pool) {}

  /** Ids in the order of `names`. */
  environments(names: readonly EnvironmentName[]): Promise<number[]> {
    const rows = names.map(({ orgId, environment, variant }) => ({
      org_id: orgId,
      hash: hashOf(environment, variant),
      environment,
      variant,
    }));
    return this.#resolve(this.#environments, 'dictionary-environments', ENVIRONMENTS, rows);
  }

  tasks(names: readonly TaskName[]): Promise<number[]> {
    const rows = names.map(({ orgId, envId, key, split, taskIndex }) => ({
      org_id: orgId,
      hash: hashOf(envId, key),
      key,
      env_id: envId,
      split,
      task_index: taskIndex,
    }));
    return this.#resolve(this.#tasks, 'dictionary-tasks', TASKS, rows);
  }

  /** Rules by field. The same for every organisation: they contain no text of users. */
  rules(sets: readonly JsonObject[]): Promise<number[]> {
    const rows = sets.map((rules) => ({ hash: hashOf(rules), rules }));
    return this.#resolve(this.#rules, 'dictionary-rules', RULES, rows);
  }

  async #resolve(
    cache: LRUCache<string, number>,
    name: string,
    text: string,
    rows: { org_id?: string; hash: string }[],
  ): Promise<number[]> {
    const keyOf = (row: { org_id?: string; hash: string }) => (row.org_id ?? '') + row.hash;
    const ids = new Map(rows.map((row) => [keyOf(row), cache.get(keyOf(row))]));
    const unknown = [...new Map(rows.map((row) => [keyOf(row), row])).values()].filter((row) => ids.get(keyOf(row)) === undefined);
    for (let round = 0; unknown.some((row) => ids.get(keyOf(row)) === undefined); round += 1) {
      // The first statement does not see a row that another replica inserts at the same time; the next one does.
      if (round === 3) throw new Error('Could not resolve the names of environments or tasks, or sets of rules.');
      const found = await this.pool.query<{ id: number; key: string }>({ name, text, values: [JSON.stringify(unknown)] });
      for (const { id, key } of found.rows) {
        ids.set(key, id);
        cache.set(key, id);
      }
    }
    return rows.map((row) => ids.get(keyOf(row))!);
  }
}
