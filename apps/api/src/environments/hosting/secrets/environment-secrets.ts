import { Inject, Injectable } from '@nestjs/common';
import { PalestraError, type SecretList } from '@palestra/protocol';
import { SecretMask, type SecretMap } from '@palestra/session';
import { type Config, CONFIG } from '../../../platform/config.ts';
import { Database } from '../../../platform/database/database.ts';
import { AesSecretBox } from '../../../platform/secret-box.ts';
import { readSecretKeys, type SecretKeys } from '../../../platform/secret-keys.ts';
import { SERVER_SECRET } from '../../../platform/tokens.ts';
import { notifyHosting } from '../hosting-events.ts';

const MAX_SECRETS = 100;
/** Credentials of its git repository: only the process that clones gets them, instances do not. */
const GIT_NAMES = ['GIT_TOKEN', 'GIT_USERNAME', 'GIT_SSH_KEY', 'GIT_KNOWN_HOSTS'];

/** Without the credentials of the repository, which instances do not get. */
export const instanceSecrets = (secrets: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(secrets).filter(([name]) => !GIT_NAMES.includes(name)));
/** A name is that of a file. */
const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,127}$/;

/** The environment that has the secrets. */
export interface SecretOwner {
  id: string;
  orgId: string;
}

/** The row for which a value is sealed. */
const rowOf = ({ id, orgId }: SecretOwner, name: string) => ({ orgId, sid: `${id}/${name}` });

/** Secrets of environments, which their instances get as files. They are stored sealed, and no route returns them. */
@Injectable()
export class EnvironmentSecrets {
  constructor(
    @Inject(Database) private readonly database: Database,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(SERVER_SECRET) private readonly keys: SecretKeys,
  ) {}

  /** Names, in their order. */
  async list(environmentId: string): Promise<SecretList> {
    const rows = await this.database.prisma.environmentSecret.findMany({
      where: { environmentId },
      select: { name: true, updatedAt: true },
      orderBy: { name: 'asc' },
    });
    return { secrets: rows.map(({ name, updatedAt }) => ({ name, updated_at: updatedAt.toISOString() })) };
  }

  /** Throws `invalid_request` for a name that cannot be that of a file, and `limit_reached`. */
  async set(owner: SecretOwner, name: string, value: string): Promise<void> {
    if (!NAME.test(name)) {
      const detail = 'The name of a secret begins with a letter or "_" and has at most 128 letters, digits, "_", "." or "-".';
      throw new PalestraError('invalid_request', { detail });
    }
    const sealed = Buffer.from(new AesSecretBox(this.keys, 'environment_secrets').seal({ value: { value } }, rowOf(owner, name)));
    const { rowCount } = await this.database.pool.query(
      `INSERT INTO environment_secrets (environment_id, name, org_id, sealed)
       SELECT $1, $2, $3, $4 WHERE (SELECT count(*) FROM environment_secrets WHERE environment_id = $1 AND name <> $2) < $5
       ON CONFLICT (environment_id, name) DO UPDATE SET sealed = excluded.sealed, org_id = excluded.org_id, updated_at = now()`,
      [owner.id, name, owner.orgId, sealed, MAX_SECRETS],
    );
    if (rowCount === 0)
      throw new PalestraError('limit_reached', { detail: `An environment has at most ${MAX_SECRETS} secrets. Delete one first.` });
    await notifyHosting(this.database.pool, owner.id);
  }

  /** Idempotent. */
  async delete(environmentId: string, name: string): Promise<void> {
    await this.database.prisma.environmentSecret.deleteMany({ where: { environmentId, name } });
    await notifyHosting(this.database.pool, environmentId);
  }

  /** Values by name, for the process that starts instances. Throws `secrets_invalid` when this process has another key. */
  async open(environmentId: string): Promise<Record<string, string>> {
    return instanceSecrets(await this.openAll(environmentId));
  }

  /** As `open`, with the credentials of its repository: what a log must not show. */
  async openAll(environmentId: string): Promise<Record<string, string>> {
    const rows = await this.database.prisma.environmentSecret.findMany({ where: { environmentId } });
    if (rows.length === 0) return {};
    // A worker reads the key each time, because the API beside it may replace it.
    const box = new AesSecretBox(await readSecretKeys(this.config), 'environment_secrets');
    return Object.fromEntries(
      rows.map(({ name, orgId, sealed }) => [name, box.open(sealed, rowOf({ id: environmentId, orgId }, name))['value']!.value]),
    );
  }
}

/** Hides the values in logs (ADR 12). A log has no line of several, so each line of a value is hidden too. */
export function maskOf(values: Record<string, string>): SecretMask {
  const secrets: SecretMap = {};
  for (const [name, value] of Object.entries(values)) {
    secrets[name] = { value };
    const lines = value.split(/\r?\n/).filter((line) => line !== '');
    if (lines.length > 1) for (const [at, line] of lines.entries()) secrets[`${name}.${at + 1}`] = { value: line.trim() };
  }
  return new SecretMask(secrets);
}
