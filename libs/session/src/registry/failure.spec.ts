import { expect, test } from 'vitest';
import { ToolFailedError } from '../ports/backend-call.ts';
import { classifyOutcome, outcomeOfError } from './failure.ts';

test('a tool that fails without a message gets one, because clients take an empty error for a lost connection', () => {
  expect(outcomeOfError(new ToolFailedError(''))).toEqual({ type: 'tool_failed', message: 'The tool failed and gave no reason.' });
  expect(outcomeOfError(new ToolFailedError('boom'))).toEqual({ type: 'tool_failed', message: 'boom' });
});

test('a tool that failed is a failure of the environment, unless its text names the infrastructure', () => {
  const classOf = (message: string) => classifyOutcome(outcomeOfError(new ToolFailedError(message)));
  expect(classOf('boom')).toBe('environment');
  expect(classOf('Infrastructure failure: The judge does not respond.')).toBe('infrastructure');
  expect(classOf('boom: Infrastructure failure: x')).toBe('environment');
});
