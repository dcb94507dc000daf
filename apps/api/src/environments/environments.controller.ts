import { Body, Controller, Delete, Get, Header, HttpCode, Inject, Param, Post, Put, Query } from '@nestjs/common';
import { stringifyJson } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { CurrentCaller, Public, RequireScope } from '../accounts/caller.decorator.ts';
import {
  type CreateEnvironment,
  createEnvironmentSchema,
  type CreateVersion,
  createVersionSchema,
  type ListEnvironments,
  listEnvironmentsSchema,
  type TaskPageQuery,
  taskPageSchema,
  type UpdateEnvironment,
  updateEnvironmentSchema,
} from './environment.schema.ts';
import { EnvironmentsService } from './environments.service.ts';

/** `/v1/environments`: names and casing are those of the `openreward` SDK and the `orwd` CLI (openreward-wire.md 3.1). */
@Controller('v1/environments')
export class EnvironmentsController {
  constructor(@Inject(EnvironmentsService) private readonly environments: EnvironmentsService) {}

  @Public()
  @Get()
  list(@CurrentCaller() caller: Caller | undefined, @Query({ schema: listEnvironmentsSchema }) query: ListEnvironments) {
    return this.environments.list(caller, query);
  }

  @RequireScope('environments')
  @HttpCode(200)
  @Post()
  create(@CurrentCaller() caller: Caller, @Body({ schema: createEnvironmentSchema }) body: CreateEnvironment) {
    return this.environments.create(caller, body);
  }

  @Public()
  @Get(':owner/:name')
  get(@CurrentCaller() caller: Caller | undefined, @Param('owner') owner: string, @Param('name') name: string) {
    return this.environments.get(caller, owner, name);
  }

  @RequireScope('environments')
  @Put(':owner/:name/details')
  update(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Body({ schema: updateEnvironmentSchema }) body: UpdateEnvironment,
  ) {
    return this.environments.update(caller, owner, name, body);
  }

  @RequireScope('environments')
  @HttpCode(200)
  @Post(':owner/:name/versions')
  addVersion(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Body({ schema: createVersionSchema }) body: CreateVersion,
  ) {
    return this.environments.addVersion(caller, owner, name, body);
  }

  @RequireScope('environments')
  @Delete(':owner/:name')
  delete(@CurrentCaller() caller: Caller, @Param('owner') owner: string, @Param('name') name: string) {
    return this.environments.delete(caller, owner, name);
  }

  @Public()
  @Get(':owner/:name/variants')
  variants(@CurrentCaller() caller: Caller | undefined, @Param('owner') owner: string, @Param('name') name: string) {
    return this.environments.variants(caller, owner, name);
  }

  /** The SDK asks with an empty owner for a bare name. */
  @Public()
  @Get(':owner/:name/required-secrets')
  requiredSecrets(@CurrentCaller() caller: Caller | undefined, @Param('owner') owner: string, @Param('name') name: string) {
    return this.environments.requiredSecrets(caller, owner, name);
  }

  @Public()
  @Get(':owner/:name/discovery')
  @Header('content-type', 'application/json; charset=utf-8')
  async discovery(@CurrentCaller() caller: Caller | undefined, @Param('owner') owner: string, @Param('name') name: string) {
    return stringifyJson(await this.environments.discoveryOf(caller, owner, name));
  }

  @Public()
  @Get(':owner/:name/tasks')
  @Header('content-type', 'application/json; charset=utf-8')
  async tasks(
    @CurrentCaller() caller: Caller | undefined,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Query({ schema: taskPageSchema }) query: TaskPageQuery,
  ) {
    return stringifyJson(await this.environments.tasks(caller, owner, name, query));
  }
}
