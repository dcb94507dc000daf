import { Module } from '@nestjs/common';
import { EnvironmentsModule } from '../environments/environments.module.ts';
import { ExportController } from './export.controller.ts';
import { ExportService } from './export.service.ts';

@Module({ imports: [EnvironmentsModule], controllers: [ExportController], providers: [ExportService] })
export class ExportsModule {}
