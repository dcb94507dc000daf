import { SetMetadata } from '@nestjs/common';
import type { ErrorCode } from '@palestra/protocol';
import type { z } from 'zod';

/** What the OpenAPI document says of a route; the schemas are the ones that validate it. */
export interface ApiDescription {
  summary: string;
  body?: z.ZodType;
  query?: z.ZodObject;
  /** JSON body of the 200; absent = any JSON. */
  response?: z.ZodType;
  /** The 200 is a stream of server-sent events: these, or with `true` those of the session plane. */
  stream?: boolean | string;
  /** The 200 is plain text. */
  text?: true;
  /** Codes beyond those that every route may answer. */
  errors?: ErrorCode[];
}

export const API_DESCRIPTION = 'palestra:api';
export const Api = (description: ApiDescription) => SetMetadata(API_DESCRIPTION, description);
