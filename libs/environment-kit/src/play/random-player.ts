import { isObject, type JsonObject } from '@palestra/protocol';
import type { Player } from './player.ts';

/** A guess is short, so that an environment without an end is played quickly. */
const CALLS = 30;
const DEPTH = 6;
/** Values of one input. A schema of a hostile server can describe billions; further ones are null. */
const MAX_VALUES = 1_000;

/** Calls random tools with random arguments that match their schemas. Texts are words of the prompt and of earlier results. */
export const randomPlayer: Player = {
  name: 'random',
  description: 'Calls random tools with random valid arguments.',
  async play({ prompt, tools, call, random }) {
    if (tools.length === 0) return;
    let words = wordsOf(prompt);
    for (let calls = 0; calls < CALLS; calls += 1) {
      const tool = pick(tools, random);
      const { text, finished } = await call(tool.name, randomInput(tool.input_schema, words, random));
      if (finished) return;
      words = [...words, ...wordsOf(text)].slice(-500);
    }
  },
};

/** Arguments that match a tool's schema, with random values. */
export function randomInput(schema: JsonObject | null, words: readonly string[], random: () => number): JsonObject {
  const value = schema === null ? {} : new RandomValue(schema, words, random).of(schema, DEPTH);
  return isObject(value) ? value : {};
}

const wordsOf = (text: string): string[] => text.match(/[\p{L}\p{N}_./{}-]+/gu)?.slice(0, 500) ?? [];
const pick = <T>(items: readonly T[], random: () => number): T => items[Math.floor(random() * items.length)]!;

class RandomValue {
  readonly #root: JsonObject;
  readonly #words: readonly string[];
  readonly #random: () => number;
  #values = 0;

  constructor(root: JsonObject, words: readonly string[], random: () => number) {
    this.#root = root;
    this.#words = words;
    this.#random = random;
  }

  of(schema: unknown, depth: number): unknown {
    this.#values += 1;
    if (!isObject(schema) || depth === 0 || this.#values > MAX_VALUES) return null;
    if ('const' in schema) return schema['const'];
    if (Array.isArray(schema['enum']) && schema['enum'].length > 0) return pick(schema['enum'] as unknown[], this.#random);
    if (typeof schema['$ref'] === 'string') return this.of(this.#resolve(schema['$ref']), depth - 1);
    const choices = schema['anyOf'] ?? schema['oneOf'];
    if (Array.isArray(choices) && choices.length > 0) return this.of(pick(choices, this.#random), depth - 1);
    const { type } = schema;
    switch (Array.isArray(type) ? pick(type, this.#random) : type) {
      case 'object':
        return this.#object(schema, depth);
      case 'array': {
        const length = Math.max(numberOf(schema['minItems']) ?? 0, Math.floor(this.#random() * 3));
        return Array.from({ length: Math.min(length, 20) }, () => this.of(schema['items'], depth - 1));
      }
      case 'integer':
        return Math.round(this.#number(schema));
      case 'number':
        return this.#number(schema);
      case 'boolean':
        return this.#random() < 0.5;
      case 'string':
        return this.#string(schema);
      default:
        return null;
    }
  }

  #object(schema: JsonObject, depth: number): JsonObject {
    const required = Array.isArray(schema['required']) ? schema['required'] : [];
    const properties = isObject(schema['properties']) ? Object.entries(schema['properties']) : [];
    const chosen = properties.filter(([name]) => required.includes(name) || this.#random() < 0.5);
    return Object.fromEntries(chosen.map(([name, property]) => [name, this.of(property, depth - 1)]));
  }

  #number(schema: JsonObject): number {
    const exclusiveLow = numberOf(schema['exclusiveMinimum']);
    const low = numberOf(schema['minimum']) ?? (exclusiveLow === null ? 0 : exclusiveLow + 1);
    const exclusiveHigh = numberOf(schema['exclusiveMaximum']);
    const high = numberOf(schema['maximum']) ?? (exclusiveHigh === null ? low + 10 : exclusiveHigh - 1);
    return low + this.#random() * Math.max(0, high - low);
  }

  #string(schema: JsonObject): string {
    const shortest = numberOf(schema['minLength']) ?? 0;
    const longest = numberOf(schema['maxLength']) ?? 1_000;
    const word = this.#words.length > 0 ? pick(this.#words, this.#random) : String(Math.floor(this.#random() * 100));
    return word.padEnd(Math.min(shortest, 1_000), 'x').slice(0, longest);
  }

  #resolve(reference: string): unknown {
    const path = /^#\/(.+)$/.exec(reference)?.[1]?.split('/') ?? [];
    return path.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), this.#root);
  }
}

const numberOf = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);
