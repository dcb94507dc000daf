import { Inject, Injectable } from '@nestjs/common';
import { PalestraError } from '@palestra/protocol';
import type { Caller, SealedRow } from '@palestra/session';
import { assertOperator } from '../../accounts/owner.ts';
import { Database } from '../../platform/database/database.ts';
import { retryDatabase } from '../../platform/database/database-retry.ts';
import { AesSecretBox, type SealedTable } from '../../platform/secret-box.ts';
import type { SecretKeys } from '../../platform/secret-keys.ts';
import { SERVER_SECRET } from '../../platform/tokens.ts';
import { SessionServer } from '../server/session-server.ts';

interface SealedRecord extends SealedRow {
  secrets: Buffer;
}
const BATCH = 500;
/** Rows of webhooks are sealed for this id, after the prefix `webhook `. */
const WEBHOOK = `'webhook ' || id`;
/** Plan: Index Scan using sessions_pkey. Runs only when the operator rotates keys. Webhooks are few, at most twenty of an organisation. */
const STALE = `
  SELECT sid, org_id AS "orgId", secrets FROM sessions
  WHERE ended_at IS NULL AND secrets IS NOT NULL AND substring(secrets FROM 1 FOR length($1::bytea)) <> $1 AND (sid, org_id) > ($2, $3) ORDER BY sid, org_id LIMIT ${BATCH}`;
const STALE_WEBHOOKS = `
  SELECT ${WEBHOOK} AS sid, org_id::text AS "orgId", secrets FROM webhooks
  WHERE substring(secrets FROM 1 FOR length($1::bytea)) <> $1 AND (${WEBHOOK}, org_id::text) > ($2, $3) ORDER BY 1, 2 LIMIT ${BATCH}`;
/** Skips sessions that have ended or changed since they were read. */
const RESEAL = `
  UPDATE sessions AS s SET secrets = n.renewed FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[]) AS n(sid, org_id, sealed, renewed)
  WHERE s.sid = n.sid AND s.org_id = n.org_id AND s.secrets = n.sealed`;

const RESEAL_WEBHOOKS = `
  UPDATE webhooks SET secrets = n.renewed FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[]) AS n(sid, org_id, sealed, renewed)
  WHERE ${WEBHOOK} = n.sid AND webhooks.org_id::text = n.org_id AND webhooks.secrets = n.sealed`;
/** At most a hundred for each environment. */
const SECRET = `environment_id || '/' || name`;
const STALE_SECRETS = `
  SELECT ${SECRET} AS sid, org_id::text AS "orgId", sealed AS secrets FROM environment_secrets
  WHERE substring(sealed FROM 1 FOR length($1::bytea)) <> $1 AND (${SECRET}, org_id::text) > ($2, $3) ORDER BY 1, 2 LIMIT ${BATCH}`;
const RESEAL_SECRETS = `
  UPDATE environment_secrets SET sealed = n.renewed FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[]) AS n(sid, org_id, sealed, renewed)
  WHERE ${SECRET} = n.sid AND environment_secrets.org_id::text = n.org_id AND environment_secrets.sealed = n.sealed`;
/** One for each environment. */
const LINK = 'environment_id::text';
const STALE_LINKS = `
  SELECT ${LINK} AS sid, org_id::text AS "orgId", sealed AS secrets FROM environment_git_links
  WHERE substring(sealed FROM 1 FOR length($1::bytea)) <> $1 AND (${LINK}, org_id::text) > ($2, $3) ORDER BY 1, 2 LIMIT ${BATCH}`;
const RESEAL_LINKS = `
  UPDATE environment_git_links AS l SET sealed = n.renewed FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[]) AS n(sid, org_id, sealed, renewed)
  WHERE ${LINK} = n.sid AND l.org_id::text = n.org_id AND l.sealed = n.sealed`;
const TABLES: { box: SealedTable; stale: string; reseal: string }[] = [
  { box: 'sessions', stale: STALE, reseal: RESEAL },
  { box: 'sessions', stale: STALE_WEBHOOKS, reseal: RESEAL_WEBHOOKS },
  { box: 'environment_secrets', stale: STALE_SECRETS, reseal: RESEAL_SECRETS },
  { box: 'environment_git_links', stale: STALE_LINKS, reseal: RESEAL_LINKS },
];
type ResealedTable = (typeof TABLES)[number];

/** Replaces the key that seals the secrets of sessions, webhooks, environments and their repositories. */
@Injectable()
export class SecretRotationService {
  constructor(
    @Inject(Database) private readonly database: Database,
    @Inject(SessionServer) private readonly server: SessionServer,
    @Inject(SERVER_SECRET) private readonly keys: SecretKeys,
  ) {}

  /**
   * Creates a new key if the service keeps its own keys, and seals stored secrets with the current key. Throws `forbidden` unless the caller is
   * an owner of the organisation that runs the service, and `invalid_request` when `drop_previous` is set and the keys are in the configuration.
   */
  async rotate(caller: Caller, { drop_previous: drop }: { drop_previous: boolean }) {
    await assertOperator(this.database, caller);
    if (drop && !this.keys.canRotate) {
      const detail = 'The keys of this service are set by its configuration. Remove them from PALESTRA_PREVIOUS_SECRET_KEYS instead.';
      throw new PalestraError('invalid_request', { detail });
    }
    // After an interrupted rotation, some secrets may still be sealed with a key that is about to be dropped.
    let resealed = this.keys.canRotate ? await this.#reseal() : 0;
    if (this.keys.canRotate) await this.keys.rotate();
    resealed += await this.#reseal();
    if (drop) await this.keys.dropPrevious();
    return {
      key_replaced: this.keys.canRotate,
      resealed,
      unreadable: await this.#countStale(),
      previous_keys: this.keys.accepted.length - 1,
    };
  }

  /** Returns how many rows were sealed again. Rows that no key opens stay unchanged. */
  async #reseal(): Promise<number> {
    let count = 0;
    for (const table of TABLES) count += await this.#resealTable(table);
    return count;
  }

  async #resealTable(table: ResealedTable): Promise<number> {
    const box = new AesSecretBox(this.keys, table.box);
    let count = 0;
    for (let after: SealedRow = { sid: '', orgId: '' }; ;) {
      const rows = await this.#stale(table, after);
      const renewed = rows.map((row) => ({ ...row, renewed: box.renew(row.secrets, row) })).filter((row) => row.renewed !== row.secrets);
      const columns = [
        renewed.map(({ sid }) => sid),
        renewed.map(({ orgId }) => orgId),
        renewed.map(({ secrets }) => secrets),
        renewed.map((row) => Buffer.from(row.renewed)),
      ];
      if (renewed.length > 0) count += (await retryDatabase(() => this.database.pool.query(table.reseal, columns))).rowCount ?? 0;
      if (rows.length < BATCH) return count;
      after = rows.at(-1)!;
    }
  }

  async #stale({ stale }: ResealedTable, after: SealedRow): Promise<SealedRecord[]> {
    return (await retryDatabase(() => this.database.pool.query<SealedRecord>(stale, [this.server.box.header, after.sid, after.orgId])))
      .rows;
  }

  async #countStale(): Promise<number> {
    let count = 0;
    for (const table of TABLES) {
      for (let after: SealedRow = { sid: '', orgId: '' }, length = BATCH; length === BATCH;) {
        const rows = await this.#stale(table, after);
        count += rows.length;
        length = rows.length;
        after = rows.at(-1) ?? after;
      }
    }
    return count;
  }
}
