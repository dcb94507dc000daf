import { Module } from '@nestjs/common';
import { EnvironmentAccess } from './environment.access.ts';
import { EnvironmentRepository } from './environment.repository.ts';
import { TaskSetRepository } from './task-sets/task-set.repository.ts';

/** Rows of environments, without routes: shared by the API process and workers. */
@Module({
  providers: [EnvironmentRepository, EnvironmentAccess, TaskSetRepository],
  exports: [EnvironmentRepository, EnvironmentAccess, TaskSetRepository],
})
export class EnvironmentStoreModule {}
