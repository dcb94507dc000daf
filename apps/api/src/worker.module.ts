import { type DynamicModule, Module } from '@nestjs/common';
import { AlertStoreModule } from './alerts/alert-store.module.ts';
import { HostingStoreModule } from './environments/hosting/hosting.module.ts';
import { ExportStoreModule } from './exports/export-store.module.ts';
import { JobsModule } from './jobs/jobs.module.ts';
import { type PlatformDependencies, PlatformModule } from './platform/platform.module.ts';
import { StoreModule } from './store/store.module.ts';

/** The modules of a worker: every module that handles jobs, and none with routes. */
@Module({})
export class WorkerModule {
  static with(dependencies: PlatformDependencies): DynamicModule {
    return {
      module: WorkerModule,
      imports: [PlatformModule.with(dependencies), JobsModule, StoreModule, ExportStoreModule, AlertStoreModule, HostingStoreModule],
    };
  }
}
