import { Module } from '@nestjs/common';
import { EnvironmentsModule } from '../environments/environments.module.ts';
import { RunsModule } from '../runs/runs.module.ts';
import { ExportLookupController } from './export-lookup.controller.ts';
import { ExportStoreModule } from './export-store.module.ts';
import { ExportController } from './export.controller.ts';
import { ExportService } from './export.service.ts';
import { RolloutExportController } from './rollout-export.controller.ts';
import { RolloutExportService } from './rollout-export.service.ts';

@Module({
  imports: [EnvironmentsModule, RunsModule, ExportStoreModule],
  controllers: [ExportController, RolloutExportController, ExportLookupController],
  providers: [ExportService, RolloutExportService],
})
export class ExportsModule {}
