import { Body, Controller, Get, HttpCode, Param, Post, Req, Res } from '@nestjs/common';
import { createTaskExportSchema, taskExportSchema } from '@palestra/protocol/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CreateTaskExport, TaskExportView } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Audited } from '../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { sendRaw } from '../rollouts/raw-body.ts';
import { ExportService } from './export.service.ts';

@Controller('v1/exports')
@RequireScope('sessions')
export class ExportController {
  constructor(private readonly exports: ExportService) {}

  @Audited<unknown, TaskExportView>('export.create', ({ result }) => ({
    targetId: result.id,
    details: { of: 'tasks', environments: result.environments, split: result.split, format: result.format },
  }))
  @Post('tasks')
  @HttpCode(200)
  @Api({
    summary: 'Write tasks of environments to a Parquet or JSON lines file, in the background',
    body: createTaskExportSchema,
    response: taskExportSchema,
    errors: ['deployment_not_found', 'scope_missing', 'capacity_exhausted'],
  })
  create(@CurrentCaller() caller: Caller, @Body({ schema: createTaskExportSchema }) body: CreateTaskExport) {
    return this.exports.create(caller, body);
  }

  @Get(':id/file')
  @Api({
    summary: 'The file of a finished export; supports Range',
    file: true,
    errors: ['export_not_found', 'file_not_found', 'range_not_satisfiable'],
  })
  async file(
    @CurrentCaller() caller: Caller,
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await sendRaw(request, reply, await this.exports.file(caller, id));
  }
}
