import { Controller, Get, Inject, Param, Query } from '@nestjs/common';
import type { Caller } from '@palestra/session';
import type { EnvironmentRunsQuery } from '@palestra/protocol';
import { environmentRunsQuerySchema, environmentRunsSchema, environmentUsageSchema } from '@palestra/protocol/schemas';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { EnvironmentAccess } from '../environments/environment.access.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { RoundFigures } from '../platform/http/round-figures.ts';
import { Database } from '../platform/database/database.ts';
import { countLiveSessions, selectRunsOf, selectUsage } from './environment-usage.sql.ts';

/** How the caller's organisation uses environments. */
@Controller('v1')
@RoundFigures()
@RequireScope('rollouts')
export class EnvironmentUsageController {
  constructor(
    private readonly database: Database,
    @Inject(EnvironmentAccess) private readonly access: EnvironmentAccess,
  ) {}

  @Get('environment-usage')
  @Api({
    summary: "Runs, rollouts, mean reward and live sessions of the caller's organisation, by environment",
    response: environmentUsageSchema,
  })
  async usage(@CurrentCaller() caller: Caller) {
    const { pool } = this.database;
    const [rows, live] = await Promise.all([selectUsage(pool, caller.orgId), countLiveSessions(pool, caller.orgId)]);
    const environments = rows.map((row) => ({ ...row, last_at: row.last_at?.toISOString() ?? null }));
    return { environments, live_sessions: Object.fromEntries(live) };
  }

  @Get('environments/:owner/:name/runs')
  @Api({
    summary: "The caller's runs whose rollouts used the environment, newest activity first; figures are those of that environment alone",
    query: environmentRunsQuerySchema,
    response: environmentRunsSchema,
    errors: ['environment_not_found'],
  })
  async runs(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Query({ schema: environmentRunsQuerySchema }) { limit }: EnvironmentRunsQuery,
  ) {
    const { id } = await this.access.visible(caller, owner, name);
    const rows = await selectRunsOf(this.database.pool, {
      orgId: caller.orgId,
      environmentId: id,
      environment: `${owner}/${name}`,
      limit,
    });
    return { runs: rows.map((row) => ({ ...row, updated_at: row.updated_at.toISOString() })) };
  }
}
