import { Controller, Get, Query } from '@nestjs/common';
import type { ApiUsageQuery } from '@palestra/protocol';
import { apiUsageQuerySchema } from '@palestra/protocol/schemas';
import { Api } from '../platform/http/api.decorator.ts';

const DAY_MS = 86_400_000;

/** For `orwd usage`: a self-hosted server bills nothing. */
@Controller('v1/billing')
export class BillingController {
  @Api({ summary: 'Paid services used: none', query: apiUsageQuerySchema })
  @Get('api-usage')
  apiUsage(@Query({ schema: apiUsageQuerySchema }) query: ApiUsageQuery) {
    const until = Date.now();
    return {
      since: new Date(until - query.days * DAY_MS).toISOString(),
      until: new Date(until).toISOString(),
      byService: [],
      totals: { requests: 0, cost: '0.000000', pendingRequests: 0 },
      ...(query.granularity === 'daily' ? { daily: [] } : {}),
    };
  }
}
