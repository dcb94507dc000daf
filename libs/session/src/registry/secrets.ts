import { type JsonValue, PalestraError, parseJson, stringifyJson } from '@palestra/protocol';
import type { SecretMap } from '../ports/backend.port.ts';

/** Shorter values occur by chance, so hiding them would damage results. */
const MIN_LENGTH = 8;

/**
 * Replaces the values of a session's secrets in JSON texts: results, errors and stored inputs show `[secret:NAME]` instead (ADR 12). Finds a
 * value also in the form in which JSON strings escape it.
 */
export class SecretMask {
  readonly #values: { name: string; value: string; escaped: string }[];

  constructor(secrets: SecretMap) {
    this.#values = Object.entries(secrets)
      .filter(([, { value }]) => value.length >= MIN_LENGTH)
      .map(([name, { value }]) => ({ name, value, escaped: JSON.stringify(value).slice(1, -1) }))
      // A value that contains another value is replaced first.
      .toSorted((a, b) => b.value.length - a.value.length);
  }

  get isEmpty(): boolean {
    return this.#values.length === 0;
  }

  /** `value` without the secrets. */
  hideIn<T extends JsonValue>(value: T): T {
    if (this.isEmpty) return value;
    const text = stringifyJson(value);
    const hidden = this.hide(text);
    return hidden === text ? value : (parseJson(hidden) as T);
  }

  /** The error without the secrets. */
  hideInError(error: unknown): unknown {
    if (this.isEmpty || !(error instanceof PalestraError)) return error;
    const text = JSON.stringify(error.detail);
    const hidden = this.hide(text);
    if (hidden === text) return error;
    const { code, status, retryAfterSeconds, backendStarting, cause } = error;
    return new PalestraError(code, { detail: JSON.parse(hidden) as string | object[], status, retryAfterSeconds, backendStarting, cause });
  }

  hide(text: string): string {
    let hidden = text;
    for (const { name, value, escaped } of this.#values) {
      if (hidden.includes(escaped)) hidden = hidden.replaceAll(escaped, marker(name));
      if (escaped !== value && hidden.includes(value)) hidden = hidden.replaceAll(value, marker(name));
    }
    return hidden;
  }

  /** Undoes `hide` in a JSON text, for a replay, in which the environment must get the same input. */
  reveal(text: string): string {
    let shown = text;
    for (const { name, escaped } of this.#values) shown = shown.replaceAll(marker(name), () => escaped);
    return shown;
  }
}

const marker = (name: string): string => `[secret:${name.replaceAll(/[^\w.-]/g, '_')}]`;
