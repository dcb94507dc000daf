import { expect, test } from 'vitest';
import { ToolFailedError } from '../ports/backend-call.ts';
import { outcomeOfError } from './failure.ts';

test('a tool that fails without a message gets one, because clients take an empty error for a lost connection', () => {
  expect(outcomeOfError(new ToolFailedError(''))).toEqual({ type: 'tool_failed', message: 'The tool failed and gave no reason.' });
  expect(outcomeOfError(new ToolFailedError('boom'))).toEqual({ type: 'tool_failed', message: 'boom' });
});
