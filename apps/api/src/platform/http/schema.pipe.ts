import { type ArgumentMetadata, Injectable, type PipeTransform } from '@nestjs/common';
import { PalestraError } from '@palestra/protocol';
import type { z } from 'zod';

/**
 * Validates `@Body({ schema })` and `@Query({ schema })` parameters. A bad one is 422 `invalid_body` whose `detail` lists
 * `{type, loc, msg, input}` as the Python servers do (openreward-wire.md 2.2), so that clients read both alike.
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
