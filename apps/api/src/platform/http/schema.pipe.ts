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
    const result = schema.safeParse(value === undefined && metadata.type !== 'custom' ? {} : value);
    if (result.success) return result.data;
    const detail = result.error.issues.map(({ code, path, message, input }) => ({
      type: code,
      loc: [metadata.type, ...path],
      msg: message,
      input,
    }));
    throw new PalestraError('invalid_body', { detail });
  }
}
