import { Body, Controller, Delete, Get, HttpCode, Param, Post, Put } from '@nestjs/common';
import type { GitLinkBody } from '@palestra/protocol';
import { gitLinkAnswerSchema, gitLinkBodySchema, linkedGitSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { Audited } from '../../../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../../../accounts/caller.decorator.ts';
import { Api } from '../../../platform/http/api.decorator.ts';
import { auditedEnvironment } from '../../environment.audit.ts';
import { GitLinkService } from './git-link.service.ts';

const ERRORS = ['environment_not_found', 'forbidden'] as const;

/** The git repository of an environment. */
@Controller('v1/environments/:owner/:name/git')
@RequireScope('environments')
export class GitLinkController {
  constructor(private readonly links: GitLinkService) {}

  @Api({ summary: 'The git repository from which pushes are deployed', response: gitLinkAnswerSchema, errors: [...ERRORS] })
  @Get()
  get(@CurrentCaller() caller: Caller, @Param('owner') owner: string, @Param('name') name: string) {
    return this.links.get(caller, owner, name);
  }

  @Api({
    summary: 'Link a git repository. The first link has the secret of its webhook, which is not shown again',
    body: gitLinkBodySchema,
    response: linkedGitSchema,
    errors: [...ERRORS],
  })
  @Audited<GitLinkBody>('environment.git_link', ({ params, body }) => ({
    ...auditedEnvironment(params),
    details: { host: new URL(body.url).host, ref: body.ref ?? null },
  }))
  @Put()
  put(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Body({ schema: gitLinkBodySchema }) body: GitLinkBody,
  ) {
    return this.links.put(caller, owner, name, body);
  }

  @HttpCode(200)
  @Api({
    summary: 'Replace the secret of the webhook. It is not shown again',
    response: linkedGitSchema,
    errors: [...ERRORS, 'git_link_not_found'],
  })
  @Audited('environment.git_secret', ({ params }) => auditedEnvironment(params))
  @Post('secret')
  replaceSecret(@CurrentCaller() caller: Caller, @Param('owner') owner: string, @Param('name') name: string) {
    return this.links.replaceSecret(caller, owner, name);
  }

  @Api({ summary: 'Unlink the git repository', response: gitLinkAnswerSchema, errors: [...ERRORS] })
  @Audited('environment.git_unlink', ({ params }) => auditedEnvironment(params))
  @Delete()
  delete(@CurrentCaller() caller: Caller, @Param('owner') owner: string, @Param('name') name: string) {
    return this.links.delete(caller, owner, name);
  }
}
