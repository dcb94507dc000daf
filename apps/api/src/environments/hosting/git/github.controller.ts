import { Body, Controller, Delete, Get, HttpCode, Param, Post, Put, Query } from '@nestjs/common';
import { type ConnectGithub, PalestraError, type UpdateGithub } from '@palestra/protocol';
import {
  connectGithubSchema,
  githubAuthSchema,
  githubConnectedSchema,
  githubDeploymentsSchema,
  githubLogsSchema,
  githubReposSchema,
  githubRuntimeLogsSchema,
  githubRuntimeQuerySchema,
  githubTaskBuildsSchema,
  githubUnlinkedSchema,
  updateGithubSchema,
} from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { Audited } from '../../../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../../../accounts/caller.decorator.ts';
import { Api } from '../../../platform/http/api.decorator.ts';
import { auditedEnvironment } from '../../environment.audit.ts';
import { GithubService } from './github.service.ts';

/** The routes of `orwd link`, `update-link`, `deployments` and `logs`, for the git repositories that the organisation has named or used. */
@Controller('v1/github')
@RequireScope('environments')
export class GithubController {
  constructor(private readonly github: GithubService) {}

  @Api({ summary: 'Whether repositories can be linked: always, because no GitHub App is needed', response: githubAuthSchema })
  @Get('auth-status')
  authStatus() {
    return { status: 'success' };
  }

  @Api({ summary: 'The page of the GitHub App, which this server does not need', errors: ['not_available'] })
  @Get(['install-url', 'reauth-url'])
  installUrl(): never {
    throw new PalestraError('not_available', {
      detail: 'This server needs no GitHub App. Name the repository with "orwd update --github-url URL", then link it.',
    });
  }

  @Api({ summary: 'Git repositories that the organisation has named or used', response: githubReposSchema })
  @Get('repos')
  repos(@CurrentCaller() caller: Caller) {
    return this.github.repos(caller);
  }

  @HttpCode(200)
  @Api({
    summary: 'Link an environment to a repository, and deploy its default branch',
    body: connectGithubSchema,
    response: githubConnectedSchema,
    errors: ['environment_not_found', 'forbidden', 'limit_reached', 'hosting_off'],
  })
  @Audited('environment.git_link', ({ params }) => auditedEnvironment(params))
  @Post('environments/:owner/:name/connect')
  connect(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Body({ schema: connectGithubSchema }) body: ConnectGithub,
  ) {
    return this.github.connect(caller, owner, name, body);
  }

  @Api({
    summary: 'Change scale and limits of a linked environment, or the folder in its repository, which is then deployed',
    body: updateGithubSchema,
    response: githubConnectedSchema,
    errors: ['environment_not_found', 'forbidden', 'git_link_not_found', 'limit_reached', 'hosting_off', 'hosting_unsupported'],
  })
  @Audited('environment.git_link', ({ params }) => ({ targetId: params['id']! }))
  @Put('environments/:id')
  update(@CurrentCaller() caller: Caller, @Param('id') id: string, @Body({ schema: updateGithubSchema }) body: UpdateGithub) {
    return this.github.update(caller, id, body);
  }

  @Api({ summary: 'Unlink an environment', response: githubUnlinkedSchema, errors: ['environment_not_found', 'forbidden'] })
  @Audited('environment.git_unlink', ({ params }) => ({ targetId: params['id']! }))
  @Delete('environments/:id')
  unlink(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.github.unlink(caller, id);
  }

  @Api({
    summary: 'Deploys of an environment, newest first',
    response: githubDeploymentsSchema,
    errors: ['environment_not_found', 'forbidden'],
  })
  @Get('environments/:id/deployments')
  deployments(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.github.deployments(caller, id);
  }

  @Api({ summary: 'The end of the log of a build', response: githubLogsSchema, errors: ['deploy_not_found'] })
  @Get('deployments/:id/logs')
  logs(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.github.buildLog(caller, id);
  }

  @Api({
    summary: 'The last lines of the instances of a deploy',
    query: githubRuntimeQuerySchema,
    response: githubRuntimeLogsSchema,
    errors: ['deploy_not_found'],
  })
  @Get('deployments/:id/runtime-logs')
  runtimeLogs(
    @CurrentCaller() caller: Caller,
    @Param('id') id: string,
    @Query({ schema: githubRuntimeQuerySchema }) { limit }: { limit: number },
  ) {
    return this.github.runtimeLog(caller, id, limit);
  }

  @Api({ summary: 'Builds of single tasks: none, a deploy builds them', response: githubTaskBuildsSchema, errors: ['deploy_not_found'] })
  @Get('deployments/:id/task-builds')
  taskBuilds(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.github.taskBuilds(caller, id);
  }

  @Api({ summary: 'The log of the build of a task: always 404, because tasks are not built', errors: ['deploy_not_found'] })
  @Get('task-builds/:id/logs')
  taskBuildLog(): never {
    throw new PalestraError('deploy_not_found', { detail: 'Single tasks are not built on this server. Read the log of the deploy.' });
  }
}
