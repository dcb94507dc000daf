import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { Controller, HttpCode, Param, Post, Req } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { type GitHookAnswer, PalestraError } from '@palestra/protocol';
import { gitHookAnswerSchema } from '@palestra/protocol/schemas';
import type { FastifyRequest } from 'fastify';
import { Database } from '../../../platform/database/database.ts';
import type { EnvironmentGitLinkModel as GitLinkRow } from '../../../platform/generated/prisma/models.ts';
import { Api } from '../../../platform/http/api.decorator.ts';
import { collect, discardRest } from '../../../platform/http/body.ts';
import { Public } from '../../../platform/http/public.decorator.ts';
import { UnauthenticatedRateLimit } from '../../../platform/http/unauthenticated-rate-limit.ts';
import { TenantConcurrency } from '../../../platform/tenant-concurrency.ts';
import { DeployService } from '../deploys/deploy.service.ts';
import { GitLinkService, sourceOfLink } from './git-link.service.ts';
import { forgetDelivery, isQueued, markPushed, rememberDelivery } from './git-link.sql.ts';
import { gitEventOf, isSigned } from './git-push.ts';

/** A push of thousands of commits. */
const MAX_BYTES = 5 * 1024 * 1024;
/** Most pushes are smaller. Such a body is read at once, as on other routes without a key. */
const SMALL_BYTES = 64 * 1024;
/** Larger bodies in progress. */
const READING = { owner: 4, all: 16 };
/** Longest time for a larger body. A client that sends a byte now and then would hold its place for ever. */
const READING_MS = 60_000;

/** Webhooks of git servers. The signature replaces the key. */
@Controller('v1/hooks/git')
export class GitHookController {
  readonly #reading = new TenantConcurrency('webhooks', READING);
  /** For environments that do not exist or are not linked, so that invented ids take no places from linked ones. */
  readonly #readingUnknown = new TenantConcurrency('webhooks', READING);

  constructor(
    private readonly links: GitLinkService,
    private readonly deploys: DeployService,
    private readonly database: Database,
    private readonly rates: UnauthenticatedRateLimit,
  ) {}

  /** What is authentic is 202, also when it starts no deploy: git servers disable webhooks that fail. */
  @Public()
  @HttpCode(202)
  @RouteConfig({ streamBody: true })
  @Api({
    summary: 'Webhook of GitHub, GitLab, Gitea or Forgejo: a push to the linked branch starts a deploy',
    status: 202,
    response: gitHookAnswerSchema,
    errors: ['webhook_signature_invalid', 'invalid_json', 'body_too_large', 'capacity_exhausted', 'limit_reached', 'hosting_off'],
  })
  @Post(':environmentId')
  async receive(@Param('environmentId') environmentId: string, @Req() request: FastifyRequest): Promise<GitHookAnswer> {
    const { body, headers, raw } = request;
    try {
      const bytes = body instanceof Readable ? await this.#read(environmentId, body, headers['content-length']) : Buffer.alloc(0);
      const link = await this.#authentic(environmentId, request, bytes);
      const event = gitEventOf(headers, parsed(bytes));
      if (event.kind === 'other') return ignored(event.what);
      const wanted = link.ref ?? event.defaultBranch;
      if (wanted !== null && wanted !== event.branch)
        return ignored(`The push is to ${JSON.stringify(event.branch)}; ${JSON.stringify(wanted)} is deployed.`);
      return await this.#deploy(link, bytes);
    } catch (error) {
      return discardRest(raw, error);
    }
  }

  /** Limits larger bodies per organisation, not per environment, because an organisation can link any number of environments. */
  async #read(environmentId: string, body: Readable, length: string | undefined): Promise<Buffer> {
    if (Number(length ?? Infinity) <= SMALL_BYTES) return collect(body, SMALL_BYTES);
    const link = await this.links.find(environmentId);
    const reading = link === null ? this.#readingUnknown : this.#reading;
    return reading.use(link?.orgId ?? environmentId, async () => {
      const late = new PalestraError('invalid_request', { status: 408, detail: 'The webhook did not arrive in time.' });
      const timer = setTimeout(() => body.destroy(late), READING_MS);
      return collect(body, MAX_BYTES).finally(() => clearTimeout(timer));
    });
  }

  /** Throws `webhook_signature_invalid`, also for an environment that does not exist. */
  async #authentic(environmentId: string, { headers, raw }: FastifyRequest, bytes: Buffer): Promise<GitLinkRow> {
    const link = await this.links.find(environmentId);
    const secret = link === null ? null : this.links.secretOf(link);
    if (link !== null && secret !== null && isSigned(headers, bytes, secret)) return link;
    await this.rates.countFailure(raw);
    throw new PalestraError('webhook_signature_invalid');
  }

  async #deploy(link: GitLinkRow, bytes: Buffer): Promise<GitHookAnswer> {
    const { environmentId, orgId, channel } = link;
    const { pool } = this.database;
    const digest = createHash('sha256').update(bytes).digest();
    if (!(await rememberDelivery(pool, environmentId, digest))) return ignored('This webhook was received before.');
    const source = sourceOfLink(link, link.ref);
    if (await isQueued(pool, environmentId, source, channel))
      return ignored('A deploy of this branch waits already, and fetches its newest commit.');
    try {
      const { id } = await this.deploys.enqueue({ id: environmentId }, { orgId, name: 'git push' }, { source, channel });
      await markPushed(pool, environmentId);
      return { deploy: id, ignored: null };
    } catch (error) {
      await forgetDelivery(pool, environmentId, digest);
      throw error;
    }
  }
}

const ignored = (why: string): GitHookAnswer => ({ deploy: null, ignored: why });

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (cause) {
    throw new PalestraError('invalid_json', {
      detail: 'The body is not JSON. Set the content type of the webhook to application/json.',
      cause,
    });
  }
}
