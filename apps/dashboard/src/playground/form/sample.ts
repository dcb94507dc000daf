import type { JsonValue } from '@palestra/protocol';
import type { Field, NumberShape } from './field.ts';

/** A small valid value for examples, with required members only. Patterns are ignored. */
export function sampleOf(field: Field): JsonValue {
  const { shape, fallback } = field;
  if (fallback !== null) return JSON.parse(fallback) as JsonValue;
  switch (shape.kind) {
    case 'string':
      return 'x'.repeat(shape.minLength ?? 0) || 'text';
    case 'number':
      return numberIn(shape);
    case 'tensor':
      return shape.sizes.reduceRight<JsonValue>(
        (inner, { min }) => Array.from({ length: Math.min(Math.max(min ?? 1, 1), 10) }, () => inner),
        numberIn(shape.item),
      );
    case 'pick':
      return shape.values[0];
    case 'list':
      return Array.from({ length: Math.min(shape.min ?? 0, 10) }, () => sampleOf(shape.item));
    case 'object':
      return Object.fromEntries(shape.members.filter(({ required }) => required).map((member) => [member.name, sampleOf(member.field)]));
    case 'oneOf':
      return sampleOf(shape.options[0]!.field);
    case 'json':
      return shape.expects === 'list' ? [] : shape.expects === 'object' ? {} : null;
  }
}

function numberIn({ integer, minimum, maximum, above, below }: NumberShape): number {
  const low = minimum ?? (above === null ? null : above + 1);
  const high = maximum ?? (below === null ? null : below - 1);
  const value = low ?? (high === null ? 1 : Math.min(1, high));
  return integer ? Math.ceil(value) : value;
}
