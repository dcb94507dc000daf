import { Body, Controller, Delete, Get, HttpCode, Param, Put } from '@nestjs/common';
import { secretListSchema, secretValueSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { Audited } from '../../../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../../../accounts/caller.decorator.ts';
import { Api } from '../../../platform/http/api.decorator.ts';
import { EnvironmentAccess } from '../../environment.access.ts';
import { auditedEnvironment } from '../../environment.audit.ts';
import { EnvironmentSecrets } from './environment-secrets.ts';

const auditedSecret = ({ params }: { params: Record<string, string> }) => ({
  ...auditedEnvironment(params),
  details: { secret: params['secret']!.slice(0, 128) },
});

/** Secrets of an environment that this service runs. */
@Controller('v1/environments/:owner/:name/secrets')
@RequireScope('environments')
export class SecretController {
  constructor(
    private readonly access: EnvironmentAccess,
    private readonly secrets: EnvironmentSecrets,
  ) {}

  @Api({ summary: 'Names of the secrets of an environment', response: secretListSchema, errors: ['environment_not_found', 'forbidden'] })
  @Get()
  async list(@CurrentCaller() caller: Caller, @Param('owner') owner: string, @Param('name') name: string) {
    return this.secrets.list((await this.access.managed(caller, owner, name)).id);
  }

  @Api({
    summary: 'Set a secret. Instances that start from now on have it as the file /run/secrets/palestra/NAME',
    body: secretValueSchema,
    response: secretListSchema,
    errors: ['environment_not_found', 'forbidden', 'limit_reached'],
  })
  @Audited('environment.secret_set', auditedSecret)
  @Put(':secret')
  async set(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Param('secret') secret: string,
    @Body({ schema: secretValueSchema }) { value }: { value: string },
  ) {
    const { id } = await this.access.managed(caller, owner, name);
    await this.secrets.set({ id, orgId: caller.orgId }, secret, value);
    return this.secrets.list(id);
  }

  @Api({ summary: 'Delete a secret', response: secretListSchema, errors: ['environment_not_found', 'forbidden'] })
  @Audited('environment.secret_delete', auditedSecret)
  @HttpCode(200)
  @Delete(':secret')
  async delete(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Param('secret') secret: string,
  ) {
    const { id } = await this.access.managed(caller, owner, name);
    await this.secrets.delete(id, secret);
    return this.secrets.list(id);
  }
}
