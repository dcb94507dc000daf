import { randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { isUuid } from '@palestra/kit';
import { type DeploySource, type GitLinkBody, type GitLinkView, type LinkedGit, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../../../platform/database/database.ts';
import type { EnvironmentGitLinkModel as GitLinkRow } from '../../../platform/generated/prisma/models.ts';
import { AesSecretBox } from '../../../platform/secret-box.ts';
import type { SecretKeys } from '../../../platform/secret-keys.ts';
import { PUBLIC_ORIGIN, type PublicOrigin, SERVER_SECRET } from '../../../platform/tokens.ts';
import { EnvironmentAccess } from '../../environment.access.ts';
import type { EnvironmentRecord } from '../../environment.record.ts';
import { EnvironmentRepository } from '../../environment.repository.ts';

const SECRET_BYTES = 32;
const DEFAULT_CHANNEL = 'stable';

/** The row for which the secret is sealed. */
const rowOf = ({ environmentId, orgId }: Pick<GitLinkRow, 'environmentId' | 'orgId'>) => ({ orgId, sid: environmentId });

/** Which repository an environment is deployed from, and the secret of its webhook. */
@Injectable()
export class GitLinkService {
  constructor(
    private readonly access: EnvironmentAccess,
    private readonly environments: EnvironmentRepository,
    private readonly database: Database,
    @Inject(SERVER_SECRET) private readonly keys: SecretKeys,
    @Inject(PUBLIC_ORIGIN) private readonly origin: PublicOrigin,
  ) {}

  async get(caller: Caller, owner: string, name: string): Promise<{ link: GitLinkView | null }> {
    const row = await this.find((await this.access.managed(caller, owner, name)).id);
    return { link: row && this.#present(row) };
  }

  /** Links the environment, or changes its link. The first link has a new secret. */
  async put(caller: Caller, owner: string, name: string, body: GitLinkBody): Promise<LinkedGit> {
    return this.link(caller, await this.access.managed(caller, owner, name), body);
  }

  /** As `put`, for an environment that the caller manages. */
  async link(caller: Caller, { id: environmentId }: EnvironmentRecord, body: GitLinkBody): Promise<LinkedGit> {
    const { orgId } = caller;
    const known = await this.find(environmentId);
    const author = (await this.environments.userName(caller.userId)) ?? caller.userId;
    const { url, ref = null, subdirectory = null, channel = DEFAULT_CHANNEL } = body;
    const values = { orgId, url, ref, subdirectory, channel, author };
    const { secret, sealed } = this.#newSecret({ environmentId, orgId });
    const row = await this.database.prisma.environmentGitLink.upsert({
      where: { environmentId },
      create: { environmentId, ...values, sealed },
      update: { ...values, ...(known?.sealed == null && { sealed }) },
    });
    return { ...this.#present(row), secret: known?.sealed == null ? secret : null };
  }

  /** Replaces the secret. The old one is refused from now on. Throws `git_link_not_found`. */
  async replaceSecret(caller: Caller, owner: string, name: string): Promise<LinkedGit> {
    const { id: environmentId } = await this.access.managed(caller, owner, name);
    if ((await this.find(environmentId)) === null) throw new PalestraError('git_link_not_found');
    const { secret, sealed } = this.#newSecret({ environmentId, orgId: caller.orgId });
    const row = await this.database.prisma.environmentGitLink.update({ where: { environmentId }, data: { sealed, orgId: caller.orgId } });
    return { ...this.#present(row), secret };
  }

  /** Idempotent. */
  async delete(caller: Caller, owner: string, name: string): Promise<{ link: null }> {
    return this.unlink((await this.access.managed(caller, owner, name)).id);
  }

  async unlink(environmentId: string): Promise<{ link: null }> {
    await this.database.prisma.environmentGitLink.deleteMany({ where: { environmentId } });
    return { link: null };
  }

  webhookUrl(environmentId: string): string {
    return `${this.origin.url}/v1/hooks/git/${environmentId}`;
  }

  async find(environmentId: string): Promise<GitLinkRow | null> {
    if (!isUuid(environmentId)) return null;
    return this.database.prisma.environmentGitLink.findUnique({ where: { environmentId } });
  }

  /** The secret of the webhook; null without one. */
  secretOf(row: GitLinkRow): string | null {
    if (row.sealed === null) return null;
    return new AesSecretBox(this.keys, 'environment_git_links').open(row.sealed, rowOf(row))['secret']!.value;
  }

  #newSecret(row: Pick<GitLinkRow, 'environmentId' | 'orgId'>): { secret: string; sealed: Buffer<ArrayBuffer> } {
    const secret = randomBytes(SECRET_BYTES).toString('base64url');
    const box = new AesSecretBox(this.keys, 'environment_git_links');
    return { secret, sealed: Buffer.from(box.seal({ secret: { value: secret } }, rowOf(row))) };
  }

  #present({ environmentId, url, ref, subdirectory, channel, sealed, pushedAt }: GitLinkRow): GitLinkView {
    return {
      url,
      ref,
      subdirectory,
      channel,
      webhook_url: this.webhookUrl(environmentId),
      has_secret: sealed !== null,
      pushed_at: pushedAt?.toISOString() ?? null,
    };
  }
}

/** What a deploy of the link fetches. `branch`: null: the default branch. */
export const sourceOfLink = ({ url, subdirectory }: GitLinkRow, branch: string | null): Extract<DeploySource, { kind: 'git' }> => ({
  kind: 'git',
  url,
  ref: branch,
  subdirectory,
});
