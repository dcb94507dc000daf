import { Body, Controller, Delete, Get, Header, HttpCode, Inject, Param, Post, Put, Query } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import {
  type CreateEnvironment,
  type CreateVersion,
  type EnvironmentListQuery,
  type EnvironmentReport,
  type EnvironmentReportQuery,
  type EnvironmentVersionView,
  type EnvironmentView,
  type ErrorCode,
  type StoredReport,
  stringifyJson,
  type TaskPageQuery,
  type UpdateEnvironment,
} from '@palestra/protocol';
import {
  createEnvironmentSchema,
  createVersionSchema,
  deletedEnvironmentSchema,
  environmentDetailsSchema,
  environmentDiscoverySchema,
  environmentListQuerySchema,
  environmentListSchema,
  environmentReportQuerySchema,
  environmentReportSchema,
  environmentVariantsSchema,
  environmentVersionListSchema,
  environmentVersionSchema,
  environmentViewSchema,
  requiredSecretsSchema,
  storedReportSchema,
  taskPageQuerySchema,
  taskPageSchema,
  updateEnvironmentSchema,
} from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { Api } from '../platform/http/api.decorator.ts';
import { Audited } from '../accounts/audit/audited.decorator.ts';
import { auditedChanges, auditedEnvironment, auditedSource } from './environment.audit.ts';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Public } from '../platform/http/public.decorator.ts';
import { EnvironmentsService } from './environments.service.ts';

const MAX_REPORT_BYTES = 256 * 1024;

/** Errors of every route that requests something from an environment's server. */
const BACKEND_ERRORS: ErrorCode[] = [
  'environment_not_found',
  'deployment_not_found',
  'environment_starting',
  'backend_unreachable',
  'backend_invalid',
  'backend_timeout',
];

/** `/v1/environments`: names and casing are those of the `openreward` SDK and the `orwd` CLI (docs/reference/ors.md#rest-endpoints). */
@Controller('v1/environments')
export class EnvironmentsController {
  constructor(@Inject(EnvironmentsService) private readonly environments: EnvironmentsService) {}

  @Public()
  @Api({ summary: 'Environments that the caller may see', query: environmentListQuerySchema, response: environmentListSchema })
  @Get()
  list(@CurrentCaller() caller: Caller | undefined, @Query({ schema: environmentListQuerySchema }) query: EnvironmentListQuery) {
    return this.environments.list(caller, query);
  }

  @RequireScope('environments')
  @HttpCode(200)
  @Api({
    summary: 'Create an environment, optionally on a running server',
    body: createEnvironmentSchema,
    response: environmentViewSchema,
    errors: ['environment_exists', 'forbidden', 'upstream_address_refused', 'answer_too_large'],
  })
  @Audited<CreateEnvironment, EnvironmentView>('environment.create', ({ body, result }) => ({
    ...auditedEnvironment(result),
    details: { private: result.is_private, ...auditedSource(body.source) },
  }))
  @Post()
  create(@CurrentCaller() caller: Caller, @Body({ schema: createEnvironmentSchema }) body: CreateEnvironment) {
    return this.environments.create(caller, body);
  }

  @Public()
  @Api({ summary: 'One environment', response: environmentDetailsSchema, errors: ['environment_not_found'] })
  @Get(':owner/:name')
  get(@CurrentCaller() caller: Caller | undefined, @Param('owner') owner: string, @Param('name') name: string) {
    return this.environments.get(caller, owner, name);
  }

  @RequireScope('environments')
  @Api({
    summary: 'Change name, description, visibility, README or links',
    body: updateEnvironmentSchema,
    response: environmentViewSchema,
    errors: ['environment_not_found', 'environment_exists'],
  })
  @Audited<UpdateEnvironment, EnvironmentView>('environment.change', ({ body, result }) => ({
    ...auditedEnvironment(result),
    details: { changed: auditedChanges(body), private: result.is_private },
  }))
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
  @RouteConfig({ bodyLimit: MAX_REPORT_BYTES })
  @Api({
    summary: 'Replace the report of a version: what validation and scripted players found',
    query: environmentReportQuerySchema,
    body: environmentReportSchema,
    response: storedReportSchema,
    errors: ['environment_not_found', 'deployment_not_found'],
  })
  @Audited<EnvironmentReport, StoredReport>('environment.report', ({ params, body, result }) => ({
    ...auditedEnvironment(params),
    details: { version: result.version, failed: body.checks.filter(({ status }) => status === 'failed').length },
  }))
  @Put(':owner/:name/report')
  setReport(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Query({ schema: environmentReportQuerySchema }) { version }: EnvironmentReportQuery,
    @Body({ schema: environmentReportSchema }) body: EnvironmentReport,
  ) {
    return this.environments.setReport(caller, owner, name, body, version);
  }

  @Public()
  @Api({
    summary: 'Immutable versions of the environment, newest first',
    response: environmentVersionListSchema,
    errors: ['environment_not_found'],
  })
  @Get(':owner/:name/versions')
  versions(@CurrentCaller() caller: Caller | undefined, @Param('owner') owner: string, @Param('name') name: string) {
    return this.environments.versions(caller, owner, name);
  }

  @RequireScope('environments')
  @HttpCode(200)
  @Api({
    summary: 'Add an immutable version on another server',
    body: createVersionSchema,
    response: environmentVersionSchema,
    errors: ['environment_not_found', 'task_set_not_found', 'upstream_address_refused', 'answer_too_large'],
  })
  @Audited<CreateVersion, EnvironmentVersionView>('environment.deploy', ({ params, body, result }) => ({
    ...auditedEnvironment(params),
    targetId: result.id,
    details: { version: result.number, ...auditedSource(body.source) },
  }))
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
  @Api({
    summary: 'Delete an environment; its open sessions are lost',
    response: deletedEnvironmentSchema,
    errors: ['environment_not_found'],
  })
  @Audited<unknown, { owner: string; name: string }>('environment.delete', ({ result }) => auditedEnvironment(result))
  @Delete(':owner/:name')
  delete(@CurrentCaller() caller: Caller, @Param('owner') owner: string, @Param('name') name: string) {
    return this.environments.delete(caller, owner, name);
  }

  @Public()
  @Api({ summary: 'Environment classes of the server', response: environmentVariantsSchema, errors: BACKEND_ERRORS })
  @Get(':owner/:name/variants')
  variants(@CurrentCaller() caller: Caller | undefined, @Param('owner') owner: string, @Param('name') name: string) {
    return this.environments.variants(caller, owner, name);
  }

  /** For a bare name the SDK sends an empty owner. */
  @Public()
  @Api({ summary: 'Secrets that the environment needs', response: requiredSecretsSchema, errors: ['environment_not_found'] })
  @Get([':owner/:name/required-secrets', '//:name/required-secrets'])
  requiredSecrets(@CurrentCaller() caller: Caller | undefined, @Param('owner') owner: string | undefined, @Param('name') name: string) {
    return this.environments.requiredSecrets(caller, owner ?? '', name);
  }

  @Public()
  @Api({ summary: 'Splits with counts and tools, per variant', response: environmentDiscoverySchema, errors: BACKEND_ERRORS })
  @Get(':owner/:name/discovery')
  @Header('content-type', 'application/json; charset=utf-8')
  async discovery(@CurrentCaller() caller: Caller | undefined, @Param('owner') owner: string, @Param('name') name: string) {
    return stringifyJson(await this.environments.discoveryOf(caller, owner, name));
  }

  @Api({
    summary: 'A page of tasks',
    query: taskPageQuerySchema,
    response: taskPageSchema,
    errors: [...BACKEND_ERRORS, 'invalid_split', 'unknown_variant'],
  })
  @Get(':owner/:name/tasks')
  @Header('content-type', 'application/json; charset=utf-8')
  async tasks(
    @CurrentCaller() caller: Caller | undefined,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Query({ schema: taskPageQuerySchema }) query: TaskPageQuery,
  ) {
    return stringifyJson(await this.environments.tasks(caller, owner, name, query));
  }
}
