import { Module } from '@nestjs/common';
import { BackendPool } from './backend.pool.ts';
import { BillingController } from './billing.controller.ts';
import { BundledEnvironments } from './bundled/bundled-environments.ts';
import { ENVIRONMENT_DIRECTORY } from './directory.token.ts';
import { DiscoveryService } from './discovery.service.ts';
import { EnvironmentStoreModule } from './environment-store.module.ts';
import { RegistryDirectory } from './environment-directory.ts';
import { EnvironmentsController } from './environments.controller.ts';
import { EnvironmentsService } from './environments.service.ts';
import { ChannelsController } from './hosting/channels/channels.controller.ts';
import { SandboxDirectory } from './hosting/sandboxes/sandbox-directory.ts';
import { Sandboxes } from './hosting/sandboxes/sandboxes.service.ts';
import { HostingModule } from './hosting/hosting.module.ts';
import { InstancesController } from './hosting/instances/instances.controller.ts';
import { TaskSetsController } from './task-sets/task-sets.controller.ts';
import { TaskSetsService } from './task-sets/task-sets.service.ts';

@Module({
  imports: [EnvironmentStoreModule, HostingModule],
  controllers: [EnvironmentsController, TaskSetsController, BillingController, InstancesController, ChannelsController],
  providers: [
    BundledEnvironments,
    BackendPool,
    DiscoveryService,
    RegistryDirectory,
    EnvironmentsService,
    TaskSetsService,
    {
      provide: ENVIRONMENT_DIRECTORY,
      inject: [RegistryDirectory, Sandboxes],
      useFactory: (environments: RegistryDirectory, sandboxes: Sandboxes) => new SandboxDirectory(environments, sandboxes),
    },
  ],
  exports: [EnvironmentStoreModule, HostingModule, BundledEnvironments, ENVIRONMENT_DIRECTORY, EnvironmentsService],
})
export class EnvironmentsModule {}
