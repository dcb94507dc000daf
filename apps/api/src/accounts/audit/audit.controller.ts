import { Controller, Get, Header, Query, StreamableFile } from '@nestjs/common';
import type { AuditExportQuery, AuditQuery } from '@palestra/protocol';
import { auditExportQuerySchema, auditListSchema, auditQuerySchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { Api } from '../../platform/http/api.decorator.ts';
import { CurrentCaller, RequireScope } from '../caller.decorator.ts';
import { AuditReader } from './audit-reader.service.ts';

@Controller('v1/audit')
@RequireScope('keys')
export class AuditController {
  constructor(private readonly reader: AuditReader) {}

  @Get()
  @Api({
    summary: 'Audit log of the organisation, newest first',
    query: auditQuerySchema,
    response: auditListSchema,
    errors: ['owner_required', 'invalid_cursor'],
  })
  list(@CurrentCaller() caller: Caller, @Query({ schema: auditQuerySchema }) query: AuditQuery) {
    return this.reader.list(caller, query);
  }

  @Get('export')
  @Api({ summary: 'Audit log as JSON lines, oldest first', query: auditExportQuerySchema, file: true, errors: ['owner_required'] })
  @Header('content-type', 'application/x-ndjson; charset=utf-8')
  @Header('content-disposition', 'attachment; filename="audit.jsonl"')
  async export(@CurrentCaller() caller: Caller, @Query({ schema: auditExportQuerySchema }) query: AuditExportQuery) {
    return new StreamableFile(await this.reader.export(caller, query), { type: 'application/x-ndjson; charset=utf-8' });
  }
}
