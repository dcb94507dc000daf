import { Controller, Delete, Get, Param } from '@nestjs/common';
import { PalestraError } from '@palestra/protocol';
import { cancelledExportSchema, rolloutExportSchema, taskExportSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { z } from 'zod';
import { Audited } from '../accounts/audit/audited.decorator.ts';
import { Authenticator } from '../accounts/authenticator.ts';
import { CurrentCaller } from '../accounts/caller.decorator.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { ExportService } from './export.service.ts';
import { RolloutExportService } from './rollout-export.service.ts';

/** Routes for exports of both kinds, whose ids never collide. The required scope depends on the kind. */
@Controller('v1/exports')
export class ExportLookupController {
  constructor(
    private readonly tasks: ExportService,
    private readonly rollouts: RolloutExportService,
    private readonly authenticator: Authenticator,
  ) {}

  @Get(':id')
  @Api({
    summary: 'Progress, failures and files of an export',
    response: z.union([taskExportSchema, rolloutExportSchema]),
    errors: ['export_not_found'],
  })
  async get(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    const rollouts = await this.rollouts.find(caller, id);
    this.authenticator.requireScope(caller, rollouts ? 'rollouts' : 'sessions');
    const found = rollouts ?? (await this.tasks.find(caller, id));
    if (!found) throw new PalestraError('export_not_found');
    return found;
  }

  @Audited('export.delete')
  @Delete(':id')
  @Api({ summary: 'Cancel an export and erase its files', response: cancelledExportSchema, errors: ['export_not_found'] })
  async delete(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    const isOfRollouts = (await this.rollouts.find(caller, id)) !== null;
    this.authenticator.requireScope(caller, isOfRollouts ? 'rollouts' : 'sessions');
    if (isOfRollouts) await this.rollouts.delete(caller, id);
    else if (!(await this.tasks.delete(caller, id))) throw new PalestraError('export_not_found');
    return { deleted: true };
  }
}
