import type { Environment } from '@palestra/environment-kit';
import { echo } from './echo/echo.environment.ts';
import { whodunit } from './whodunit/whodunit.environment.ts';

/** Every bundled environment, in the order in which it is registered. */
export const bundledEnvironments: Environment[] = [whodunit, echo];
