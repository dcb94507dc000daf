import { Controller, Delete, Get, Inject, Param, Post, Put } from '@nestjs/common';
import { PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Api } from '../platform/http/api.decorator.ts';
import { CurrentCaller } from '../accounts/caller.decorator.ts';
import { EnvironmentsService } from './environments.service.ts';

function notAvailable(): never {
  throw new PalestraError('not_available', {
    detail: 'Building environments from GitHub is not available yet on this server. Add a running environment server by URL.',
  });
}

/** GitHub hosting for `orwd`: nothing is connected, and a connection fails with `not_available`. */
@Controller('v1/github')
export class GithubController {
  constructor(@Inject(EnvironmentsService) private readonly environments: EnvironmentsService) {}

  @Api({ summary: 'Whether GitHub is connected: never on this server' })
  @Get('auth-status')
  authStatus() {
    return { status: 'noAuth' };
  }

  @Api({ summary: 'Deployments of an environment without a GitHub connection: none', errors: ['environment_not_found'] })
  @Get('environments/:id/deployments')
  deployments(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.environments.deployments(caller, id);
  }

  @Api({ summary: 'GitHub hosting, not available yet', errors: ['not_available'] })
  @Get([
    'install-url',
    'reauth-url',
    'repos',
    'deployments/:id/logs',
    'deployments/:id/runtime-logs',
    'deployments/:id/task-builds',
    'task-builds/:id/logs',
  ])
  read() {
    notAvailable();
  }

  @Api({ summary: 'GitHub hosting, not available yet', errors: ['not_available'] })
  @Post('environments/:owner/:name/connect')
  connect() {
    notAvailable();
  }

  @Api({ summary: 'GitHub hosting, not available yet', errors: ['not_available'] })
  @Put('environments/:id')
  updateLink() {
    notAvailable();
  }

  @Api({ summary: 'GitHub hosting, not available yet', errors: ['not_available'] })
  @Delete('environments/:id')
  unlink() {
    notAvailable();
  }
}
