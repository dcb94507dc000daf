import { Injectable, Module, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance } from 'fastify';
import { AccountsModule } from '../accounts/accounts.module.ts';
import { EnvironmentsModule } from '../environments/environments.module.ts';
import { Readiness } from '../platform/database/readiness.ts';
import { addHealthRoutes } from './health.routes.ts';
import { HealthService } from './health.service.ts';

@Injectable()
class HealthRoutes implements OnModuleInit {
  constructor(
    private readonly adapterHost: HttpAdapterHost,
    private readonly readiness: Readiness,
    private readonly health: HealthService,
  ) {}

  onModuleInit(): void {
    addHealthRoutes(this.adapterHost.httpAdapter.getInstance<FastifyInstance>(), this.readiness, this.health);
  }
}

@Module({ imports: [AccountsModule, EnvironmentsModule], providers: [HealthService, HealthRoutes], exports: [HealthService] })
export class HealthModule {}
