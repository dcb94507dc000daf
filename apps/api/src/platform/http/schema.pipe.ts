import { type ArgumentMetadata, Injectable, type PipeTransform } from '@nestjs/common';
import { PalestraError } from '@palestra/protocol';
import type { z } from 'zod';

/**
 * Validates `@Body({ schema })` and `@Query({ schema })` parameters. An invalid one is 422 `invalid_body` with `{type, loc, msg, input}` in
 * `detail`, as Python servers respond (docs/reference/ors.md#validation-errors).
 */
@Injectable()
export class SchemaPipe implements PipeTransform {
  transform(value: unknown, metadata: ArgumentMetadata): unknown {
    const schema = (metadata as { schema?: z.ZodType }).schema;
    if (!schema) return value;
    return parsed(schema, value === undefined && metadata.type !== 'custom' ? {} : value, metadata.type);
  }
}

/** Validates a body that the handler reads from the request. Throws `invalid_body`. */
export const parseBody = <Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> => parsed(schema, body ?? {}, 'body');

function parsed<Schema extends z.ZodType>(schema: Schema, value: unknown, place: string): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const detail = result.error.issues.map(({ code, path, message, input }) => ({ type: code, loc: [place, ...path], msg: message, input }));
  throw new PalestraError('invalid_body', { detail });
}
