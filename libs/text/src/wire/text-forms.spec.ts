import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { type JsonObject, parseJson, stringifyJson } from '@palestra/protocol';
import { findAction, renderObservation, toAction } from './action.ts';
import { parseToolCall } from './tool-call.ts';

/** Texts of models with what Python reads in them. integrations/python/tests/test_text.py compares the Python package with the same file. */
const file = path.resolve(import.meta.dirname, '../../../../tests/fixtures/text-forms.json');
const fixture = parseJson(readFileSync(file, 'utf8')) as unknown as {
  tool_calls: { text: string; parsed: JsonObject | null }[];
  schemas: Record<string, JsonObject>;
  actions: { schema: string; text: string; action?: JsonObject; error?: string }[];
  found: { text: string; action?: string; error?: string }[];
  observations: { observation: JsonObject; text: string }[];
};

/** Python does not keep the spelling of a number (`2.50`). */
const values = (of: unknown): unknown => JSON.parse(stringifyJson(of as JsonObject));

const outcome = (work: () => unknown): unknown => {
  try {
    return { action: work() };
  } catch (error) {
    return { error: (error as Error).message };
  }
};

describe('texts of models, read as the Python package reads them', () => {
  test.each(fixture.tool_calls)('$text', ({ text, parsed }) => {
    expect(values(parseToolCall(text))).toEqual(values(parsed));
  });

  test.each(fixture.actions)('$schema: $text', ({ schema, text, ...expected }) => {
    const tool = { name: 'step', schema: fixture.schemas[schema]!, observes: true };
    expect(values(outcome(() => toAction(tool, text)))).toEqual(values(expected));
  });

  test.each(fixture.found)('an action in $text', ({ text, ...expected }) => {
    expect(outcome(() => findAction(text))).toEqual(expected);
  });

  test.each(fixture.observations)('an observation', ({ observation, text }) => {
    expect(renderObservation(observation)).toBe(text);
  });
});
