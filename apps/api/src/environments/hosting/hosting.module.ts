import { Module } from '@nestjs/common';
import { EnvironmentStoreModule } from '../environment-store.module.ts';
import { HostingEvents } from './hosting-events.ts';
import { HostingLogs } from './logs/hosting-logs.service.ts';
import { InstanceLogStore } from './logs/instance-log-store.ts';
import { LogRetention } from './logs/log-retention.ts';
import { EnvironmentSecrets } from './secrets/environment-secrets.ts';
import { SecretController } from './secrets/secret.controller.ts';

/** Deployed environments without routes: shared by the API process and workers. */
@Module({
  imports: [EnvironmentStoreModule],
  providers: [HostingEvents, HostingLogs, InstanceLogStore, LogRetention, EnvironmentSecrets],
  exports: [HostingEvents, HostingLogs, InstanceLogStore, EnvironmentSecrets],
})
export class HostingStoreModule {}

/** Routes of deployed environments. */
@Module({
  imports: [EnvironmentStoreModule, HostingStoreModule],
  controllers: [SecretController],
  exports: [HostingStoreModule],
})
export class HostingModule {}
