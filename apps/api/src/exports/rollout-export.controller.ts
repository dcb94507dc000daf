import { Body, Controller, Get, HttpCode, Param, Post, Req, Res } from '@nestjs/common';
import { createRolloutExportSchema, rolloutExportListSchema, rolloutExportSchema } from '@palestra/protocol/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CreateRolloutExport, RolloutExportView } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Audited } from '../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { sendRaw } from '../rollouts/raw-body.ts';
import { RolloutExportService } from './rollout-export.service.ts';

@Controller('v1/exports')
@RequireScope('rollouts')
export class RolloutExportController {
  constructor(private readonly exports: RolloutExportService) {}

  @Audited<unknown, RolloutExportView>('export.create', ({ result }) => ({
    targetId: result.id,
    details: { of: 'rollouts', run: result.run, format: result.format },
  }))
  @Post()
  @HttpCode(200)
  @Api({
    summary: 'Write the rollouts of a query to files, in the background',
    body: createRolloutExportSchema,
    response: rolloutExportSchema,
    errors: ['run_not_found', 'invalid_query', 'review_queue_not_found', 'capacity_exhausted'],
  })
  create(@CurrentCaller() caller: Caller, @Body({ schema: createRolloutExportSchema }) body: CreateRolloutExport) {
    return this.exports.create(caller, body);
  }

  @Get()
  @Api({ summary: 'Exports of rollouts, newest first', response: rolloutExportListSchema })
  list(@CurrentCaller() caller: Caller) {
    return this.exports.list(caller);
  }

  @Get(':id/files/:name')
  @Api({
    summary: 'A file of a finished export of rollouts; its name is one %2F-encoded segment; supports Range',
    file: true,
    errors: ['export_not_found', 'file_not_found', 'range_not_satisfiable'],
  })
  async file(
    @CurrentCaller() caller: Caller,
    @Param('id') id: string,
    @Param('name') name: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await sendRaw(request, reply, await this.exports.file(caller, id, name));
  }
}
