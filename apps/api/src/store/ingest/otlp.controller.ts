import { Body, Controller, Headers, Post, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { traceReceiptSchema, traceRequestSchema } from '@palestra/protocol/schemas';
import type { FastifyReply } from 'fastify';
import { PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../../accounts/caller.decorator.ts';
import { INGEST_BODY_LIMIT } from '../../platform/http/body.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { encodeTraceResponse } from './otlp-protobuf.ts';
import { OtlpService } from './otlp.service.ts';

const PROTOBUF = 'application/x-protobuf';
const JSON_TYPE = 'application/json';

@Controller('v1/traces')
@RequireScope('rollouts')
export class OtlpController {
  constructor(private readonly otlp: OtlpService) {}

  /** OTLP/HTTP. The response has the type of the request. */
  @Post()
  @RouteConfig({ rawBody: true, bodyLimit: INGEST_BODY_LIMIT, anyDepth: true })
  @Api({
    summary: 'Store traces of GenAI spans as rollouts (OTLP/HTTP, JSON or protobuf)',
    body: traceRequestSchema,
    response: traceReceiptSchema,
    errors: ['unsupported_media_type', 'invalid_request', 'ingest_overloaded', 'body_too_large'],
  })
  async store(
    @CurrentCaller() caller: Caller,
    @Body() body: Buffer | undefined,
    @Headers('content-type') contentType: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const type = contentType?.split(';', 1)[0]!.trim().toLowerCase();
    if (type !== PROTOBUF && type !== JSON_TYPE) throw new PalestraError('unsupported_media_type');
    const receipt = await this.otlp.store(caller, body ?? Buffer.alloc(0), type === PROTOBUF);
    if (type === JSON_TYPE) return receipt;
    void reply.type(PROTOBUF);
    return encodeTraceResponse(receipt);
  }
}
