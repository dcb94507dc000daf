import { SetMetadata } from '@nestjs/common';
import type { ErrorCode } from '@palestra/protocol';
import type { z } from 'zod';

/** Description of a route in the OpenAPI document. The schemas are the ones that validate it. */
export interface ApiDescription {
  summary: string;
  body?: z.ZodType;
  /** The content type of a file that the route takes instead of the body, or as its only body. */
  bodyFile?: string;
  query?: z.ZodObject;
  /** Request headers, by their names in lower case. */
  headers?: z.ZodObject;
  /** JSON body of the 200; absent = any JSON. */
  response?: z.ZodType;
  /** The 200 is a stream of server-sent events: the data of each event, which is text for `z.string()` and otherwise JSON. */
  stream?: Record<string, z.ZodType>;
  /** The 200 is plain text. */
  text?: true;
  /** The 200 is a file of any type. */
  file?: true;
  /** The 200 has no body. */
  empty?: true;
  /** A 202 without a body is possible. */
  accepted?: string;
  /** Status of a success. Default 200. */
  status?: 202;
  /** The success is a stream of these values, each on a line. */
  lines?: z.ZodType;
  /** Errors are JSON-RPC errors, some of them with status 200. `more`: errors without a code of the catalogue, by status. */
  rpc?: { error: z.ZodType; more: Record<number, string> };
  /** Error codes besides those of every route. */
  errors?: ErrorCode[];
  /** Error codes that this route sends with another status than that of the catalogue. */
  errorsAs?: Record<number, ErrorCode[]>;
}

export const API_DESCRIPTION = 'palestra:api';
export const Api = (description: ApiDescription) => SetMetadata(API_DESCRIPTION, description);
