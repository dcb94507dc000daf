import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor, UseInterceptors } from '@nestjs/common';
import { withoutNoise } from '@palestra/kit/reward-text';
import { map, type Observable } from 'rxjs';

@Injectable()
class RoundFiguresInterceptor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map(rounded));
  }
}

/** For routes that answer with figures: their numbers have twelve significant digits (docs/reference/metrics.md#numbers). */
export const RoundFigures = () => UseInterceptors(RoundFiguresInterceptor);

/** `value` with all its numbers rounded. Leaves objects with a class, such as dates, as they are. */
export function rounded(value: unknown): unknown {
  if (typeof value === 'number') return withoutNoise(value);
  if (Array.isArray(value)) return value.map(rounded);
  if (value === null || typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, rounded(member)]));
}
