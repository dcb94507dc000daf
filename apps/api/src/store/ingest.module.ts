import { Module } from '@nestjs/common';
import { StoreModule } from './store.module.ts';
import { Backlog } from './ingest/backlog.service.ts';
import { IngestService } from './ingest/ingest.service.ts';
import { MessageObjects } from './ingest/message-objects.service.ts';
import { OtlpController } from './ingest/otlp.controller.ts';
import { OtlpService } from './ingest/otlp.service.ts';

/** Writes to the store. A worker does not need it. */
@Module({
  imports: [StoreModule],
  controllers: [OtlpController],
  providers: [Backlog, IngestService, OtlpService, MessageObjects],
  exports: [IngestService],
})
export class IngestModule {}
