import { SetMetadata } from '@nestjs/common';
import type { ErrorCode } from '@palestra/protocol';
import type { z } from 'zod';

/** Description of a route in the OpenAPI document. The schemas are the ones that validate it. */
export interface ApiDescription {
  summary: string;
  body?: z.ZodType;
  query?: z.ZodObject;
  /** JSON body of the 200; absent = any JSON. */
  response?: z.ZodType;
  /** The 200 is a stream of server-sent events: the named ones, or with `true` those of the session API. */
  stream?: boolean | string;
  /** The 200 is plain text. */
  text?: true;
  /** Error codes besides those of every route. */
  errors?: ErrorCode[];
}

export const API_DESCRIPTION = 'palestra:api';
export const Api = (description: ApiDescription) => SetMetadata(API_DESCRIPTION, description);
