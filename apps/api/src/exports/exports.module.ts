import { Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.ts';
import { EnvironmentsModule } from '../environments/environments.module.ts';
import { RunsModule } from '../runs/runs.module.ts';
import { ExportLookupController } from './export-lookup.controller.ts';
import { ExportController } from './export.controller.ts';
import { ExportService } from './export.service.ts';
import { RolloutExportController } from './rollout-export.controller.ts';
import { ExportMessages } from './rollout-export.messages.ts';
import { RolloutExportRunner } from './rollout-export.runner.ts';
import { RolloutExportService } from './rollout-export.service.ts';

@Module({
  imports: [AccountsModule, EnvironmentsModule, RunsModule],
  controllers: [ExportController, RolloutExportController, ExportLookupController],
  providers: [ExportService, ExportMessages, RolloutExportRunner, RolloutExportService],
})
export class ExportsModule {}
