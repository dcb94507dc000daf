import { Module } from '@nestjs/common';
import { RolloutsModule } from '../rollouts/rollouts.module.ts';
import { RunsModule } from '../runs/runs.module.ts';
import { AnnotationController } from './annotation.controller.ts';
import { AnnotationService } from './annotation.service.ts';
import { BulkAnnotationService } from './bulk-annotation.service.ts';

@Module({
  imports: [RolloutsModule, RunsModule],
  controllers: [AnnotationController],
  providers: [AnnotationService, BulkAnnotationService],
})
export class AnnotationsModule {}
