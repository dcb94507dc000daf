import { Module } from '@nestjs/common';
import { StoreModule } from '../store.module.ts';
import { IngestService } from './ingest.service.ts';
import { MessageObjects } from './message-objects.service.ts';
import { OtlpController } from './otlp.controller.ts';
import { OtlpService } from './otlp.service.ts';

/** What writes to the store; a worker does without. */
@Module({
  imports: [StoreModule],
  controllers: [OtlpController],
  providers: [IngestService, OtlpService, MessageObjects],
  exports: [IngestService],
})
export class IngestModule {}
