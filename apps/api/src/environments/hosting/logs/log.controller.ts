import { Controller, Get, Param, Query, Res } from '@nestjs/common';
import { type HostingLogQuery, PalestraError } from '@palestra/protocol';
import { hostingLogLineSchema, hostingLogQuerySchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import type { FastifyReply } from 'fastify';
import { CurrentCaller, RequireScope } from '../../../accounts/caller.decorator.ts';
import { Database } from '../../../platform/database/database.ts';
import { Api } from '../../../platform/http/api.decorator.ts';
import { onClosed } from '../../../platform/http/on-closed.ts';
import { InFlight } from '../../../platform/limits.ts';
import { EnvironmentAccess } from '../../environment.access.ts';
import { EnvironmentRepository } from '../../environment.repository.ts';
import { selectDeploy } from '../deploys/deploy.sql.ts';
import { DeployService } from '../deploys/deploy.service.ts';
import type { LogScope } from './hosting-log.sql.ts';
import { replyWithLines } from './line-reply.ts';
import { LogReader, type LogRead } from './log-reader.service.ts';
import { BUILD_DATABASE_MS } from './log-retention.ts';

/** Logs of builds and of running instances, as lines of JSON. */
@Controller('v1')
@RequireScope('environments')
export class LogController {
  constructor(
    private readonly access: EnvironmentAccess,
    private readonly environments: EnvironmentRepository,
    private readonly deploys: DeployService,
    private readonly reader: LogReader,
    private readonly database: Database,
    // The sixth: a followed log counts as an open stream.
    private readonly inFlight: InFlight,
  ) {}

  @Api({
    summary: 'The log of a deploy. With `follow` it ends with the deploy',
    query: hostingLogQuerySchema,
    lines: hostingLogLineSchema,
    errors: ['deploy_not_found', 'limit_reached'],
  })
  @Get('deploys/:id/logs')
  async deploy(
    @CurrentCaller() caller: Caller,
    @Param('id') id: string,
    @Query({ schema: hostingLogQuerySchema }) query: HostingLogQuery,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { environment_id: environmentId, ended_at: endedAt } = await this.deploys.find(caller, id);
    const isArchived = endedAt !== null && endedAt.getTime() < Date.now() - BUILD_DATABASE_MS;
    const isOver = async () => (await selectDeploy(this.database.pool, id))?.ended_at !== null;
    await this.#send(caller, reply, { scope: { kind: 'deploy', environmentId, deployId: id }, query, isArchived, isOver });
  }

  @Api({
    summary: 'The log of the instances of an environment',
    query: hostingLogQuerySchema,
    lines: hostingLogLineSchema,
    errors: ['environment_not_found', 'forbidden', 'deployment_not_found', 'limit_reached'],
  })
  @Get('environments/:owner/:name/logs')
  async environment(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Query({ schema: hostingLogQuerySchema }) query: HostingLogQuery,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { id: environmentId } = await this.access.managed(caller, owner, name);
    const versionId = query.version === undefined ? null : await this.environments.versionId(environmentId, query.version);
    if (query.version !== undefined && versionId === null)
      throw new PalestraError('deployment_not_found', {
        detail: `Deployment not found. ${owner}/${name} has no version ${query.version}.`,
      });
    const scope: LogScope = { kind: 'instances', environmentId, versionId, instanceId: query.instance ?? null };
    await this.#send(caller, reply, { scope, query, isArchived: true, isOver: async () => false });
  }

  async #send(caller: Caller, reply: FastifyReply, read: LogRead): Promise<void> {
    if (read.query.follow) onClosed(reply.raw, this.inFlight.enter('streams', caller));
    await replyWithLines(reply, (signal) => this.reader.read(read, signal));
  }
}
