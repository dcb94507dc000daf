import { Module } from '@nestjs/common';
import { BackendPool } from './backend.pool.ts';
import { BillingController } from './billing.controller.ts';
import { BundledEnvironments } from './bundled/bundled-environments.ts';
import { ENVIRONMENT_DIRECTORY } from './directory.token.ts';
import { DiscoveryService } from './discovery.service.ts';
import { EnvironmentAccess } from './environment.access.ts';
import { RegistryDirectory } from './environment-directory.ts';
import { EnvironmentRepository } from './environment.repository.ts';
import { EnvironmentsController } from './environments.controller.ts';
import { EnvironmentsService } from './environments.service.ts';
import { GithubController } from './github.controller.ts';
import { TaskSetRepository } from './task-sets/task-set.repository.ts';
import { TaskSetsController } from './task-sets/task-sets.controller.ts';
import { TaskSetsService } from './task-sets/task-sets.service.ts';

@Module({
  controllers: [EnvironmentsController, TaskSetsController, GithubController, BillingController],
  providers: [
    EnvironmentRepository,
    EnvironmentAccess,
    BundledEnvironments,
    BackendPool,
    DiscoveryService,
    RegistryDirectory,
    EnvironmentsService,
    TaskSetRepository,
    TaskSetsService,
    { provide: ENVIRONMENT_DIRECTORY, useExisting: RegistryDirectory },
  ],
  exports: [BundledEnvironments, ENVIRONMENT_DIRECTORY, EnvironmentAccess, EnvironmentsService],
})
export class EnvironmentsModule {}
