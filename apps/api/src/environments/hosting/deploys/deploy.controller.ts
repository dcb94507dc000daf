import { Readable } from 'node:stream';
import { Controller, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { type DeployView, type ErrorCode, PalestraError, type UploadDeployQuery } from '@palestra/protocol';
import { createDeploySchema, deployListSchema, deploySchema, uploadDeployQuerySchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import type { FastifyRequest } from 'fastify';
import { type AuditedRequest, Audited } from '../../../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../../../accounts/caller.decorator.ts';
import { Api } from '../../../platform/http/api.decorator.ts';
import { discardRest } from '../../../platform/http/body.ts';
import { parseBody } from '../../../platform/http/schema.pipe.ts';
import { auditedEnvironment } from '../../environment.audit.ts';
import { DeployService } from './deploy.service.ts';

const ARCHIVE = 'application/gzip';
const ERRORS: ErrorCode[] = [
  'environment_not_found',
  'forbidden',
  'limit_reached',
  'hosting_off',
  'hosting_unsupported',
  'source_too_large',
  'capacity_exhausted',
];

const auditedDeploy = ({ params, result }: AuditedRequest<unknown, DeployView>) => ({
  ...auditedEnvironment(params),
  targetId: result.id,
  details: { source: result.source.kind, channel: result.channel },
});

/** Deploys of an environment. */
@Controller('v1/environments/:owner/:name/deploys')
@RequireScope('environments')
export class EnvironmentDeployController {
  constructor(private readonly deploys: DeployService) {}

  /** The body of an upload is a tar archive of the folder, compressed with gzip. */
  @HttpCode(202)
  @RouteConfig({ streamTypes: [ARCHIVE] })
  @Api({
    summary: 'Build a version from a git repository, an image, URLs or an uploaded folder, and promote it when it is ready',
    query: uploadDeployQuerySchema,
    body: createDeploySchema,
    bodyFile: ARCHIVE,
    status: 202,
    response: deploySchema,
    errors: ERRORS,
  })
  @Audited<unknown, DeployView>('deploy.create', auditedDeploy)
  @Post()
  async create(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Query({ schema: uploadDeployQuerySchema }) query: UploadDeployQuery,
    @Req() { body, headers, raw }: FastifyRequest,
  ): Promise<DeployView> {
    if (body instanceof Readable) {
      const length = headers['content-length'];
      const archive = { body, bytes: length === undefined ? null : Number(length) };
      return this.deploys.upload(caller, owner, name, query, archive).catch((error: unknown) => discardRest(raw, error));
    }
    if (Buffer.isBuffer(body))
      throw new PalestraError('invalid_request', { detail: `The body must be JSON, or a file of the type ${ARCHIVE}.` });
    return this.deploys.create(caller, owner, name, parseBody(createDeploySchema, body));
  }

  @Api({ summary: 'The last deploys, newest first', response: deployListSchema, errors: ['environment_not_found', 'forbidden'] })
  @Get()
  list(@CurrentCaller() caller: Caller, @Param('owner') owner: string, @Param('name') name: string) {
    return this.deploys.list(caller, owner, name);
  }
}

/** Single deploys. */
@Controller('v1/deploys')
@RequireScope('environments')
export class DeployController {
  constructor(private readonly deploys: DeployService) {}

  @Api({ summary: 'One deploy', response: deploySchema, errors: ['deploy_not_found'] })
  @Get(':id')
  get(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.deploys.get(caller, id);
  }

  @HttpCode(200)
  @Api({
    summary: 'Cancel a deploy. One that has ended stays as it is',
    response: deploySchema,
    errors: ['deploy_not_found'],
  })
  @Audited<unknown, DeployView>('deploy.cancel', ({ params, result }) => ({ targetId: params['id']!, target: result.environment }))
  @Post(':id/cancel')
  cancel(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.deploys.cancel(caller, id);
  }
}
